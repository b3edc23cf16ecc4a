// Selects parts of a catalog with the filter library of oc-mirror v2.
//
//	oc-mirror-filter FILE
//
// FILE has the JSON lines of a catalog. Each line of standard input is a JSON object: `full` as in an ImageSetConfiguration, and
// `packages` as the library's own configuration has them. Prints a line for each: an object with the names of the bundles by package
// and channel in `channels`, and the default channels by package in `defaults`, or one with `error`.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	filter "github.com/sherine-k/catalog-filter/pkg/filter/mirror-config/v1alpha1"
)

type question struct {
	Full     bool
	Packages []filter.Package
}

type answer struct {
	Error    string                         `json:"error,omitempty"`
	Channels map[string]map[string][]string `json:"channels,omitempty"`
	Defaults map[string]string              `json:"defaults,omitempty"`
}

func main() {
	lines, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	questions := bufio.NewScanner(os.Stdin)
	questions.Buffer(nil, 1<<24)
	for questions.Scan() {
		var asked question
		if err := json.Unmarshal(questions.Bytes(), &asked); err != nil {
			panic(err)
		}
		printed, err := json.Marshal(selected(lines, asked))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(printed))
	}
}

// selected reads the catalog anew, because the library changes the one that it gets.
func selected(lines []byte, asked question) answer {
	catalog, err := declcfg.LoadReader(bytes.NewReader(lines))
	if err != nil {
		panic(err)
	}
	config := filter.FilterConfiguration{Packages: asked.Packages}
	config.APIVersion, config.Kind = filter.FilterAPIVersion, filter.FilterKind
	if err := config.Validate(); err != nil {
		return answer{Error: err.Error()}
	}
	chosen, err := filter.NewMirrorFilter(config, filter.InFull(asked.Full)).FilterCatalog(context.Background(), catalog)
	if err != nil {
		return answer{Error: err.Error()}
	}
	found := answer{Channels: map[string]map[string][]string{}, Defaults: map[string]string{}}
	for _, pkg := range chosen.Packages {
		found.Defaults[pkg.Name] = pkg.DefaultChannel
	}
	for _, channel := range chosen.Channels {
		if found.Channels[channel.Package] == nil {
			found.Channels[channel.Package] = map[string][]string{}
		}
		names := []string{}
		for _, entry := range channel.Entries {
			names = append(names, entry.Name)
		}
		found.Channels[channel.Package][channel.Name] = names
	}
	return found
}
