# The pages as a site with search: mdbook over the pages where they are.
# shellcheck shell=bash

# build_book FOLDER REF: the site of infra/SUMMARY.md. Links to what is no page of it lead to the sources at that branch or tag. Fails where
# a link leads to nothing.
build_book() {
  local source=$WORK/book-source
  need_python mdbook "$MDBOOK"
  rm -rf "$source" "$1"
  python3 -B "$LIB/book.py" lay "$source" "$2"
  mdbook build --dest-dir "$(realpath -m "$1")" "$source" >"$WORK/book.log" 2>&1 || die "the book is not built: $(tail -5 "$WORK/book.log")"
  ! grep -E 'WARN|ERROR' "$WORK/book.log" >&2 || die "mdbook complains about the pages"
  # mdbook copies its settings too.
  rm -f "$1/book.toml"
  python3 -B "$LIB/book.py" check "$1"
}
