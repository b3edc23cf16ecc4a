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
	count, taken, refused, differ := 0, 0, 0, 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		count++
		takes, err := reader(asked.Library)(asked.Range)
		if err != nil {
			refused++
			if asked.Takes != nil {
				differ++
				fmt.Printf("%s %q: the mirror takes it, and the library says %v\n", asked.Library, asked.Range, err)
			}
			continue
		}
		if asked.Takes == nil {
			differ++
			fmt.Printf("%s %q: the mirror refuses it\n", asked.Library, asked.Range)
			continue
		}
		for at, version := range asked.Versions {
			expected, crashes := answer(takes, version)
			if expected {
				taken++
			}
			if !crashes && expected != ((*asked.Takes)[at] == '1') {
				differ++
				fmt.Printf("%s %q: the library says %v of %s\n", asked.Library, asked.Range, expected, version)
			}
		}
	}
	fmt.Printf("%d ranges, %d of them refused, take %d versions; %d differ\n", count, refused, taken, differ)
	if differ > 0 || taken == 0 || refused == 0 {
		os.Exit(1)
	}
}

// answer says that the library crashes where blang has made no function of an empty alternative.
func answer(takes func(string) bool, version string) (taken, crashes bool) {
	defer func() { crashes = recover() != nil }()
	return takes(version), false
}

func reader(library string) func(string) (func(string) bool, error) {
	if library == "blang" {
		return readBlang
	}
	return readMasterminds
}

func readMasterminds(text string) (func(string) bool, error) {
	constraint, err := masterminds.NewConstraint(text)
	if err != nil {
		return nil, err
	}
	return func(version string) bool { return constraint.Check(masterminds.MustParse(version)) }, nil
}

func readBlang(text string) (func(string) bool, error) {
	within, err := blang.ParseRange(text)
	if err != nil {
		return nil, err
	}
	return func(version string) bool { return within(blang.MustParse(version)) }, nil
}
