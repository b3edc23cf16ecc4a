// Validates catalogs as opm validate and opm serve of operator-registry do: a second opinion on `catalog-mirror validate`.
//
// Standard input has one JSON object a line, with the catalog in `text`. Standard output has one for each of them: `valid`
// and `servable`, and the error of opm in `message`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"testing/fstest"

	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/lib/config"
)

type answer struct {
	Valid    bool   `json:"valid"`
	Servable bool   `json:"servable"`
	Message  string `json:"message"`
}

func main() {
	log.SetFlags(0)
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var catalog struct{ Text string }
		err := in.Decode(&catalog)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := json.NewEncoder(out).Encode(validate(catalog.Text)); err != nil {
			log.Fatal(err)
		}
	}
}

func validate(text string) answer {
	files := fstest.MapFS{"catalog.yaml": {Data: []byte(text), Mode: 0o644}}
	if err := config.Validate(context.Background(), files); err != nil {
		return answer{Message: err.Error()}
	}
	if err := serve(files); err != nil {
		return answer{Valid: true, Message: err.Error()}
	}
	return answer{Valid: true, Servable: true}
}

func serve(files fstest.MapFS) error {
	folder, err := os.MkdirTemp("", "opm")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := cache.New(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	return cache.LoadOrRebuild(context.Background(), store, files)
}
