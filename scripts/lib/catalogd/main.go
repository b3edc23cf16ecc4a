// Serves a folder of FBC as catalogd does, with its GraphQL. It uses internal packages, so scripts/lib/tools.sh builds it
// within a copy of catalogd's module.
package main

import (
	"context"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/operator-framework/operator-controller/internal/catalogd/storage"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: catalogd-oracle FOLDER ADDRESS")
	}
	directory, err := os.MkdirTemp("", "catalogd")
	check(err)
	root := &url.URL{Scheme: "http", Host: os.Args[2], Path: "/catalogs"}
	store := storage.NewLocalDirV1(directory, root, storage.MetasHandlerEnabled, storage.GraphQLQueriesEnabled)
	check(store.Store(context.Background(), "c", os.DirFS(os.Args[1])))
	server := &http.Server{
		Addr:        os.Args[2],
		Handler:     store.StorageServerHandler(),
		ReadTimeout: 5 * time.Second,
	}
	check(server.ListenAndServe())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
