"""What a rule takes from the description of its stage (src/autotailor/stages.py)."""

EXPORTS, REPORT = "exports", "report.html"
THREADS = {
    "": 1,
    "measuring": measuring_threads,
    "confirming": confirming_threads,
    "pretraining": pretraining_threads,
    "moments": moments_threads,
    "distilling": distilling_threads,
    "sharing": sharing_threads,
    "finetuning": finetuning_threads,
    "polishing": polishing_threads,
}
"""What stages compute with (``autotailor.stages``)."""


def said(stage, kind):
    """What the console says while a rule of a stage runs."""
    text = stage.says
    if isinstance(text, When):
        text = text.then if kind.holds(text.condition) else text.otherwise
    return f"{stage.name}: {text}"


def paths(file, kind):
    """The path of a file, or those of the exports of a kind; a folder ends with a slash in the stage's description."""
    path = f"results/{FOLDERS[WRITER[file].of]}/{file}"
    if path.endswith("/"):
        return directory(path[:-1])
    if EXPORT not in path:
        return path
    return [path.replace(EXPORT, name) for name in kind.exports]


def found(files, holds, kind):
    """The path or the paths that a stage's description means.

    Args:
        files: the description.
        holds: says whether a condition holds.
        kind: of the pairs of the rule.
    """
    if isinstance(files, When):
        chosen = files.then if holds(files.condition) else files.otherwise
        return found(chosen, holds, kind)
    if isinstance(files, tuple):
        each = [found(part, holds, kind) for part in files]
        return [path for part in each for path in ([part] if is_path(part) else part)]
    if not isinstance(files, Shown):
        return paths(files, kind)
    category = score_title if files.category == "score" else files.category
    caption = f"../report/{files.caption or Path(files.file).stem}.rst"
    return report(paths(files.file, kind), caption=caption, category=category)


def is_path(value):
    """Whether this is one path."""
    return isinstance(value, str)


def inputs_of(stage, kind):
    """The inputs of a rule; functions of the wildcards where the configuration chooses them."""

    def chosen(files):
        def value(wildcards):
            result = found(files, lambda name: CONDITIONS[name](wildcards), kind)
            known = dict(wildcards.items())
            return (
                result.format(**known)
                if is_path(result)
                else [path.format(**known) for path in result]
            )

        return value

    if stage.of == "fleet":
        return {name: compared(paths(file, None)) for name, file in stage.reads.items()}
    return {
        name: chosen(files) if isinstance(files, When | tuple) else paths(files, kind)
        for name, files in stage.reads.items()
    }


def outputs_of(stage, kind):
    """The outputs of a rule; those of exports by the name of the export and what they are."""
    result = {}
    for name, files in stage.writes.items():
        value = found(files, kind.holds, kind)
        if is_path(value):
            result[name] = value
        else:
            names = (f"{export}_{name}" for export in kind.exports)
            result |= dict(zip(names, value))
    provenance = f"results/{FOLDERS[stage.of]}/provenance/{stage.name}.json"
    return result | {"provenance": provenance}


def finished(pair):
    """What a finished run of a pair hands back: report, exports, and the tables that questions read.

    Snakemake makes a removed file again only where it is asked for or needed. Files of weights are not asked for, so that
    they can be removed to save space without another training.
    """
    kind = next(
        kind
        for kind in KINDS
        if pair.model in kind.models and pair.device in kind.devices
    )
    absent = () if kind.is_measured else MEASURED_TABLES
    tables = [name for name in (*OF_MODEL, *OF_DEVICE) if name not in absent]
    written = [*outputs_of(STAGES["export"], kind).values()]
    written += outputs_of(STAGES["report"], kind).values()
    wanted = [
        path
        for path in written
        if EXPORTS in Path(path).parts or Path(path).name == REPORT
    ]
    wanted += [paths(name, kind) for name in tables if not name.endswith(".pt")]
    return [path.format(**pair._asdict()) for path in wanted]


def log_of(stage, ending):
    """The path of a log of a stage."""
    folder = FOLDERS[stage.of]
    name = folder if stage.of == "fleet" else f"{folder}/{stage.name}"
    return f"logs/{name}.{ending}"


def described():
    """The name of each rule with its stage and its kind."""
    there = {
        "": True,
        "measured": MEASURED,
        "ncnn": POOLED,
        "fleet": len(MATRIX.pairs) > 1,
    }
    for stage in STAGES.values():
        if there[stage.only]:
            for kind in KINDS if stage.is_kind else KINDS[:1]:
                yield kind.named(stage.name), stage, kind
