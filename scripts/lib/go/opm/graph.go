package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

var (
	nameLine = regexp.MustCompile(`^ +%% (package|channel) (".*")$`)
	edgeLine = regexp.MustCompile(`^      \S.*\["(.*)"\]-- "?(skip|skipRange|replace)(?:\(.*\)")? --> .*\["(.*)"\]$`)
)

// printGraph prints the edges that `opm alpha render-graph` draws, one a line: package, channel, from, rule and to, with tabs between.
func printGraph(folder string) {
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(folder))
	check(err)
	// All packages at once, because opm reads the versions of all bundles for each drawing.
	var drawn bytes.Buffer
	check(declcfg.NewMermaidWriter().WriteChannels(*config, &drawn))
	names := map[string]string{}
	for _, line := range bytes.Split(drawn.Bytes(), []byte("\n")) {
		if found := nameLine.FindSubmatch(line); found != nil {
			var name string
			_, err := fmt.Sscanf(string(found[2]), "%q", &name)
			check(err)
			names[string(found[1])] = name
		} else if found := edgeLine.FindSubmatch(line); found != nil {
			fmt.Printf("%s\t%s\t%s\t%s\t%s\n", names["package"], names["channel"], found[1], found[2], found[3])
		}
	}
}
