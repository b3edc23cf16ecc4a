package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"testing/fstest"

	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/lib/config"
)

type verdict struct {
	Valid    bool   `json:"valid"`
	Servable bool   `json:"servable"`
	Message  string `json:"message"`
}

// validateAll reads one JSON object a line, with the catalog in `text`, and writes one for each of them: `valid` and `servable`,
// and the error of opm in `message`.
func validateAll() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.More() {
		var catalog struct{ Text string }
		check(in.Decode(&catalog))
		check(json.NewEncoder(out).Encode(validate(catalog.Text)))
	}
}

func validate(text string) verdict {
	files := fstest.MapFS{"catalog.yaml": {Data: []byte(text), Mode: 0o644}}
	if err := config.Validate(context.Background(), files); err != nil {
		return verdict{Message: err.Error()}
	}
	if err := serve(files); err != nil {
		return verdict{Valid: true, Message: err.Error()}
	}
	return verdict{Valid: true, Servable: true}
}

func serve(files fstest.MapFS) error {
	folder, err := os.MkdirTemp("", "opm")
	check(err)
	defer os.RemoveAll(folder)
	store, err := cache.New(folder)
	check(err)
	defer store.Close()
	return cache.LoadOrRebuild(context.Background(), store, files)
}
