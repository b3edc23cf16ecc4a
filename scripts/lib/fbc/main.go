// Reads a folder of FBC as the tools of OLM do, makes what they resolve of it, and prints how many packages, channels
// and bundles that are. A second opinion on what the mirror writes.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

func main() {
	if err := count(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func count(folder string) error {
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(folder))
	if err != nil {
		return err
	}
	model, err := declcfg.ConvertToModel(*config)
	if err != nil {
		return err
	}
	channels, bundles := 0, 0
	for _, pkg := range model {
		channels += len(pkg.Channels)
		for _, channel := range pkg.Channels {
			bundles += len(channel.Bundles)
		}
	}
	fmt.Println(len(model), channels, bundles)
	return nil
}
