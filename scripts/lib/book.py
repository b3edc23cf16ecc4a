"""Lays out the pages of infra/SUMMARY.md for mdbook, and checks the site that it built.

    book.py lay FOLDER REF   writes book.toml and the pages, with links to other files of the tree as links to the sources at REF
    book.py check FOLDER     fails if a link of the site leads to no page, no file or no heading of it
"""
import html.parser, os, pathlib, posixpath, re, sys, urllib.parse

REPOSITORY = "https://github.com/catalog-mirror/catalog-mirror"
BOOK = f"""[book]
title = "catalog-mirror"
description = "Mirrors operator catalogs at the edge"
language = "en"
src = "."

[output.html]
git-repository-url = "{REPOSITORY}"
edit-url-template = "{REPOSITORY}/edit/main/{{path}}"
no-section-label = true

[output.html.print]
enable = false

[output.html.search]
limit-results = 20
"""
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages(root):
    """Returns the paths of the pages in the summary, from the top of the tree."""
    summary = (root / "infra/SUMMARY.md").read_text()
    return [posixpath.normpath(posixpath.join("infra", target)) for target in LINK.findall(summary)]


def lay(folder, ref):
    root, target = pathlib.Path(os.environ["ROOT"]), pathlib.Path(folder)
    listed = pages(root)

    def rewritten(path, text):
        """Returns the text with links as they are in the site."""
        def link(match):
            place, mark, anchor = match[1].partition("#")
            if not place or "://" in place or place.startswith("mailto:"):
                return match[0]
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), urllib.parse.unquote(place)))
            readme = posixpath.join(found, "README.md")
            if found not in listed and readme in listed:
                found = readme
            if found in listed:
                # mdbook calls the page of a README index.html, but does not change links to it.
                shown = re.sub(r"README\.md$", "index.md", found)
                return f"]({posixpath.relpath(shown, posixpath.dirname(path) or '.')}{mark}{anchor})"
            if not (root / found).exists():
                # Names of Rust items in the READMEs of crates.
                return match[0] if "." not in place and "/" not in place else sys.exit(f"{path}: {place} is missing")
            kind = "tree" if (root / found).is_dir() else "blob"
            return f"]({REPOSITORY}/{kind}/{ref}/{found}{mark}{anchor})"
        return LINK.sub(link, text)

    for path in listed:
        page = target / path
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(rewritten(path, (root / path).read_text()))
    # The summary lies at the top of the site's sources.
    summary = LINK.sub(lambda match: f"]({posixpath.normpath(posixpath.join('infra', match[1]))})", (root / "infra/SUMMARY.md").read_text())
    (target / "SUMMARY.md").write_text(summary)
    (target / "book.toml").write_text(BOOK)


class Page(html.parser.HTMLParser):
    """Links and names of headings of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names.add(values.get("id"))
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(values[name])


def check(folder):
    folder = pathlib.Path(folder).resolve()
    read = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    broken, count = [], 0
    for path, page in read.items():
        # Its links begin at the top of whatever site it is put on.
        if path.name in ("404.html", "toc.html"):
            continue
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                broken.append(f"{path.relative_to(folder)}: {link} leads to nothing")
            elif parts.fragment and target in read and urllib.parse.unquote(parts.fragment) not in read[target].names:
                broken.append(f"{path.relative_to(folder)}: {link} has no such heading")
    if broken or count < 100:
        sys.exit("\n".join(broken) or f"only {count} links were found")
    print(f"{len(read)} pages, {count} links")


{"lay": lay, "check": check}[sys.argv[1]](*sys.argv[2:])
