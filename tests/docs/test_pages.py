from tests.docs.pages import pages


def test_the_pages_are_as_the_code_makes_them() -> None:
    for file, text in pages():
        assert file.read_text(encoding="utf-8") == text, f"{file.name}: run make docs"
