// Reads ranges of versions with the libraries that OLM and oc-mirror use, and compares what they take with what the mirror takes.
//
// Each line of standard input is a JSON object: `library` is blang or masterminds, `range` is the text, and `takes` has a 1 for each
// version of `versions` that is in the range; without `takes` the mirror refuses the range.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	masterminds "github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
)

type question struct {
	Library, Range string
	Versions       []string
	Takes          *string
}

func main() {
	count, taken, refused, differences := 0, 0, 0, 0
	differ := func(asked question, text string, more ...any) {
		differences++
		fmt.Printf("%s %q: %s\n", asked.Library, asked.Range, fmt.Sprintf(text, more...))
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		count++
		takes, err := reader(asked.Library, asked.Range)
		if err != nil {
			refused++
			if asked.Takes != nil {
				differ(asked, "the mirror takes it, and the library says %v", err)
			}
			continue
		}
		if asked.Takes == nil {
			differ(asked, "the mirror refuses it")
			continue
		}
		for at, version := range asked.Versions {
			expected, crashes := answer(takes, version)
			if expected {
				taken++
			}
			if !crashes && expected != ((*asked.Takes)[at] == '1') {
				differ(asked, "the library says %v of %s", expected, version)
			}
		}
	}
	fmt.Printf("%d ranges, %d of them refused, take %d versions; %d differ\n", count, refused, taken, differences)
	if differences > 0 || taken == 0 || refused == 0 {
		os.Exit(1)
	}
}

// answer says that the library crashes where blang has made no function of an empty alternative.
func answer(takes func(string) bool, version string) (taken, crashes bool) {
	defer func() { crashes = recover() != nil }()
	return takes(version), false
}

// reader returns what tells whether a range takes a version.
func reader(library, text string) (func(string) bool, error) {
	if library == "blang" {
		within, err := blang.ParseRange(text)
		return func(version string) bool { return within(blang.MustParse(version)) }, err
	}
	constraint, err := masterminds.NewConstraint(text)
	return func(version string) bool { return constraint.Check(masterminds.MustParse(version)) }, err
}
