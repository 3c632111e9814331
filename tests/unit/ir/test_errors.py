from autotailor.ir.errors import GraphError, printable, printable_value


def test_what_a_terminal_would_obey_is_shown_and_not_sent() -> None:
    hostile = "a\x1b]52;c;\x07\x9b2J\r\b\u202etxt\udce9"
    shown = r"a\x1b]52;c;\x07\x9b2J\r\x08\u202etxt\udce9"
    assert printable(hostile) == shown
    assert str(GraphError(f"node {hostile}: no")) == f"node {shown}: no"
    assert (printable_value(hostile), printable_value(3)) == (shown, 3)


def test_names_in_any_language_and_lines_stay() -> None:
    text = "Größe 猫 שלום 👩\u200d🔬\u00a0\n\tb"
    assert printable(text) == text
