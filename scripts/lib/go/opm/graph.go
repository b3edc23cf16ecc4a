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
	channelLine = regexp.MustCompile(`^    %% channel (".*")$`)
	edgeLine    = regexp.MustCompile(`^      \S.*\["(.*)"\]-- "?(skip|skipRange|replace)(?:\(.*\)")? --> .*\["(.*)"\]$`)
)

// printGraph prints the edges that `opm alpha render-graph` draws, one a line: package, channel, from, rule and to, with tabs between.
func printGraph(folder string) {
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(folder))
	check(err)
	for _, one := range config.Packages {
		var drawn bytes.Buffer
		writer := declcfg.NewMermaidWriter(declcfg.WithSpecifiedPackageName(one.Name))
		check(writer.WriteChannels(*config, &drawn))
		channel := ""
		for _, line := range bytes.Split(drawn.Bytes(), []byte("\n")) {
			if found := channelLine.FindSubmatch(line); found != nil {
				_, err := fmt.Sscanf(string(found[1]), "%q", &channel)
				check(err)
			} else if found := edgeLine.FindSubmatch(line); found != nil {
				fmt.Printf("%s\t%s\t%s\t%s\t%s\n", one.Name, channel, found[1], found[2], found[3])
			}
		}
	}
}
