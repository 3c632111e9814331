// What the pages of autotailor share: live charts, hints at marks, and buttons that copy a command.
(() => {
  "use strict";
  document.documentElement.classList.add("js");
  const hint = document.createElement("div");
  hint.className = "hint";
  hint.hidden = true;
  hint.setAttribute("aria-hidden", "true");
  document.body.append(hint);

  // Vega's handler of tooltips: a value is a text, or an object of names and texts.
  function tooltip(handler, event, item, value) {
    hint.hidden = value === null || value === undefined || value === "";
    if (hint.hidden) return;
    hint.textContent = typeof value === "object"
      ? Object.entries(value).map(([name, text]) => `${name}: ${text}`).join("\n") : value;
    const { width, height } = hint.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 8);
    const below = event.clientY + 18;
    hint.style.left = `${Math.max(8, left)}px`;
    hint.style.top = `${below + height > innerHeight ? event.clientY - height - 12 : below}px`;
  }

  const views = {};
  async function draw(script) {
    const place = document.getElementById(script.dataset.chart);
    const drawn = place.firstElementChild;
    const canvas = document.createElement("div");
    canvas.className = "live";
    place.append(canvas);
    drawn.style.display = "none";
    try {
      const view = new vega.View(vega.parse(JSON.parse(script.textContent)), {
        renderer: "svg", container: canvas, hover: true, tooltip,
      });
      await view.runAsync();
      drawn.remove();
      views[script.dataset.chart] = view;
    } catch (error) {
      canvas.remove();
      drawn.style.display = "";
      console.error(error);
    }
    // The place around both is one image with a label: what Vega says of single marks is left out.
    for (const name of ["role", "aria-roledescription", "aria-label"]) canvas.removeAttribute(name);
    canvas.setAttribute("aria-hidden", "true");
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // pages opened from a file may not use the clipboard without asking
      const area = document.createElement("textarea");
      area.value = text;
      area.setAttribute("aria-hidden", "true");
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const said = document.getElementById("said");
    if (said) said.textContent = `Copied: ${text}`;
  }

  const drawing = Promise.all([...document.querySelectorAll("script[data-chart]")].map(draw));
  window.autotailor = { copy, views, drawing };
})();
