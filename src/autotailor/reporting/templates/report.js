// The report of a run: the card of a SubNet, the slider of budgets, and the table of operators.
(async () => {
  "use strict";
  const { copy, views, drawing } = window.autotailor;
  const run = JSON.parse(document.getElementById("explorer").textContent);
  const byId = new Map(run.subnets.map(subnet => [subnet.id, subnet]));
  const reference = byId.get("original") ?? byId.get("largest") ?? run.subnets[0];
  const at = id => document.getElementById(id);
  const minus = text => text.replace("-", "−");
  const digits = (value, count) => minus(Number(value.toPrecision(count)).toString());

  function number(value, error, unit, count) {
    if (value === null || value === undefined) return "–";
    return `${count === undefined ? digits(value, 4) : minus(value.toFixed(count))}`
      + (error === null || error === undefined ? "" : ` ±${Number(error.toPrecision(1))}`) + ` ${unit}`;
  }
  const costOf = ([cost, error]) => number(cost, error, run.cost.unit);
  const accuracyOf = numbers => number(numbers[2], numbers[3] === null ? null : numbers[3], "%", 2);
  const reached = subnet => (subnet.measured ?? subnet.predicted)[0];

  function facts(subnet) {
    const found = [];
    const { predicted, evaluated, measured } = subnet;
    if (measured) {
      found.push([`${run.cost.title}${run.cost.measured ? ", measured" : ""}`, costOf(measured)]);
      found.push([`${run.score}, measured`, accuracyOf(measured)]);
    }
    if (run.cost.measured || !measured) found.push([`${run.cost.title}, ${run.cost.measured ? "expected" : "predicted"}`, costOf(predicted)]);
    if (evaluated) found.push([`${run.mean}, evaluated on the validation set`, accuracyOf(evaluated)]);
    if (predicted[2] !== null) found.push([`${run.mean}, predicted`, accuracyOf(predicted)]);
    if (measured && subnet !== reference && reference.measured) {
      found.push([run.cost.measured ? "speed-up" : `fewer ${run.cost.title}`, `${(reached(reference) / measured[0]).toFixed(2)}×`]);
    }
    if (subnet.budget !== null) {
      const met = subnet.met === null ? "" : subnet.met ? ", met" : ", missed";
      found.push(["budget", number(subnet.budget, null, run.cost.unit) + met]);
    }
    if (subnet.weights) found.push(["weights", subnet.weights]);
    return found;
  }

  function element(tag, text, ...children) {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  }

  let shown = null;
  function show(id) {
    const subnet = byId.get(id);
    if (!subnet) return;
    shown = subnet;
    const kind = { export: "", original: ": your network", front: ": on the predicted front", evaluated: "" }[subnet.kind];
    at("card-name").textContent = subnet.id + kind;
    at("card-facts").replaceChildren(...facts(subnet).map(([name, text]) => element("div", "", element("dt", name), element("dd", text))));
    at("card-assignment").hidden = subnet.choices === null;
    at("card-choices").replaceChildren(...(subnet.choices ?? []).map((choice, index) =>
      element("li", "", `${run.variables[index]} `, element("b", Number.isFinite(choice) ? digits(choice, 4) : String(choice)))));
    at("card-export").hidden = subnet.command === null;
    at("card-command").textContent = subnet.command ?? "";
    at("said").textContent = "";
    const view = views["chart-front-0"];
    if (view) view.signal("picked", subnet.id).runAsync();
  }

  // The slider: budgets between the cheapest and the dearest SubNet, in two hundred steps.
  const slider = at("budget");
  const costs = run.subnets.map(reached).filter(Number.isFinite);
  const low = Math.min(...costs), high = Math.max(...costs);
  const budgetOf = step => low + (high - low) * step / Number(slider.max);
  const stepOf = cost => Math.ceil(Number(slider.max) * (cost - low) / (high - low || 1) - 1e-9);

  function best(budget) {
    const among = document.querySelector("input[name=among]:checked").value;
    const rate = { export: subnet => subnet.measured, evaluated: subnet => subnet.evaluated, front: subnet => subnet.predicted }[among];
    const offered = subnet => among === "evaluated" ? subnet.evaluated : subnet.kind === among;
    const within = run.subnets.filter(subnet => offered(subnet) && rate(subnet)[0] <= budget * (1 + 1e-9));
    const accuracy = subnet => rate(subnet)[2] ?? subnet.predicted[2] ?? -1;
    return within.reduce((found, subnet) => !found || accuracy(subnet) > accuracy(found) ? subnet : found, null);
  }

  function slide() {
    const budget = budgetOf(Number(slider.value));
    const found = best(budget);
    const text = number(budget, null, run.cost.unit);
    at("budget-shown").textContent = text;
    slider.setAttribute("aria-valuetext", found ? `${text}: ${found.id}` : `${text}: no SubNet`);
    const view = views["chart-front-0"];
    if (view) view.signal("budget", budget).runAsync();
    if (found) show(found.id);
    else {
      at("card-name").textContent = "No SubNet costs so little";
      at("card-facts").replaceChildren();
      at("card-assignment").hidden = at("card-export").hidden = true;
    }
  }

  await drawing;
  slider.addEventListener("input", slide);
  for (const radio of document.querySelectorAll("input[name=among]")) radio.addEventListener("change", slide);
  slider.value = stepOf(reached(byId.get(run.picked)));
  slide();
  show(run.picked);
  at("card-copy").addEventListener("click", () => shown?.command && copy(shown.command));

  const front = views["chart-front-0"];
  if (front) {
    front.addEventListener("mouseover", (event, item) => item?.datum?.id && show(item.datum.id));
    front.addEventListener("click", (event, item) => {
      if (!item?.datum?.id) return;
      show(item.datum.id);
      if (shown.command) copy(shown.command);
    });
  }
  for (const cell of document.querySelectorAll("th[data-pick]")) {
    const button = element("button");
    button.type = "button";
    button.className = "plain";
    button.append(...cell.childNodes);
    button.addEventListener("focus", () => show(cell.dataset.pick));
    button.addEventListener("click", () => {
      show(cell.dataset.pick);
      at("front").scrollIntoView({ behavior: "smooth" });
    });
    cell.append(button);
    cell.parentElement.addEventListener("mouseenter", () => show(cell.dataset.pick));
  }

  // Where the time goes.
  const choice = at("time-subnet");
  if (!choice) return;
  const cells = JSON.parse(at("time-cells").textContent);
  const rows = at("time-rows");
  const stages = rows.closest("table").tHead.rows[0].cells.length === 6;
  const ms = value => value === null ? "–" : value.toFixed(4);
  choice.addEventListener("change", () => {
    const name = choice.value;
    at("time-name").textContent = name;
    at("time-column").textContent = `${name} (ms)`;
    rows.replaceChildren(...Object.entries(cells[name]).map(([place, [kind, stage, before, after]], index) => {
      const row = element("tr");
      if (index >= 12) row.className = "more";
      const head = element("th", place);
      head.scope = "row";
      head.className = "text";
      const texts = [...(stages ? [stage || "–"] : []), kind].map(text => { const cell = element("td", text); cell.className = "text"; return cell; });
      const saved = (before ?? 0) - (after ?? 0);
      row.append(head, ...texts, ...[ms(before), ms(after), (saved < 0 ? "−" : "+") + Math.abs(saved).toFixed(4)].map(text => element("td", text)));
      return row;
    }));
    for (const [id, view] of Object.entries(views)) if (id.startsWith("chart-contributors")) view.signal("subnet", name).runAsync();
  });
  const all = at("time-all");
  all.addEventListener("click", () => {
    const open = rows.classList.toggle("all");
    all.setAttribute("aria-expanded", String(open));
    all.textContent = open ? "Show the largest only" : "Show all operators";
  });
  all.hidden = rows.rows.length <= 12;
})();
