# The site of the pages: mdbook builds it, each link of it leads to a page, a file or a heading, and it has all pages for users. A link
# that leads to nothing fails the build.
# shellcheck shell=bash

# shellcheck source=/dev/null
source "$LIB/book.sh"

BOOK=$WORK/book

# The pages that users get: all of infra, and those of the programs.
pages_for_users() { (cd "$ROOT" && find infra functions -name '*.md' ! -path infra/SUMMARY.md | sort); }

succeeds "the site is built, and no link of it is broken" build_book "$BOOK" main
is "it has each page for users" "$(comm -23 <(pages_for_users) <(cd "$BOOK" && find . -name '*.html' -printf '%P\n' | sed 's|index\.html$|README.md|; s|html$|md|' | sort))" ""
matches "and finds words" "$(cat "$BOOK"/searchindex-*.js)" 'garbage'
build_book "$WORK/again" main >/dev/null
succeeds "a second build has the same bytes" diff -r "$BOOK" "$WORK/again"
sed -i 's|href="infra/INSTALL.html"|href="infra/INSTALLED.html"|' "$BOOK/index.html"
fails "a broken link is found" "infra/INSTALLED.html leads to nothing" python3 -B "$LIB/book.py" check "$BOOK"
