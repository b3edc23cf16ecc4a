// Command clients reads a catalog with the code of OLM v1: it is built inside the module of operator-controller, whose packages are
// internal.
//
//	clients image REFERENCE FOLDER    pulls and unpacks the image as catalogd does
//	clients http BASE FOLDER          reads status.urls.base as operator-controller does
//
// FOLDER must be new. Prints the hash of all files with their names.
//
//	clients follow CA REPLICAS FOLDER
//
// follows the ClusterCatalogs of $KUBECONFIG. REPLICAS is a file with the addresses behind the service, which is read for each
// connection. Prints `holds NAME IMAGE HASH` for each image that it keeps the content of, and `refused NAME IMAGE ERROR`.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"go.podman.io/image/v5/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/operator-framework/operator-controller/api/v1"
	"github.com/operator-framework/operator-controller/internal/operator-controller/catalogmetadata/cache"
	"github.com/operator-framework/operator-controller/internal/operator-controller/catalogmetadata/client"
	imageutil "github.com/operator-framework/operator-controller/internal/shared/util/image"
)

func main() {
	folder := os.Args[len(os.Args)-1]
	if err := os.Mkdir(folder, 0o700); err != nil {
		panic(err)
	}
	if os.Args[1] == "follow" {
		if err := follow(os.Args[2], os.Args[3], folder); err != nil {
			panic(err)
		}
		return
	}
	read := map[string]func(context.Context, string, string) (fs.FS, error){"image": pull, "http": get}[os.Args[1]]
	files, err := read(context.Background(), os.Args[2], folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	count, hash, err := hashOf(files)
	if err != nil || count == 0 {
		fmt.Fprintln(os.Stderr, count, "files", err)
		os.Exit(1)
	}
	fmt.Println(count, hash)
}

// hashOf returns the number of files and the hash of all of them with their names.
func hashOf(files fs.FS) (int, string, error) {
	hash := sha256.New()
	count := 0
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		count++
		fmt.Fprintf(hash, "%s %x\n", path, sha256.Sum256(content))
		return err
	})
	return count, fmt.Sprintf("%x", hash.Sum(nil)), err
}

func pull(ctx context.Context, reference, folder string) (fs.FS, error) {
	settings := func(context.Context) (*types.SystemContext, error) {
		return &types.SystemContext{DockerInsecureSkipTLSVerify: types.OptionalBoolTrue}, nil
	}
	puller := imageutil.ContainersImagePuller{SourceCtxFunc: settings}
	files, _, _, err := puller.Pull(ctx, "catalog", reference, imageutil.CatalogCache(folder))
	return files, err
}

func get(ctx context.Context, base, folder string) (fs.FS, error) {
	catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "catalog"}}
	catalog.Status.URLs = &ocv1.ClusterCatalogURLs{Base: base}
	catalog.Status.ResolvedSource = &ocv1.ResolvedCatalogSource{Type: "Image", Image: &ocv1.ResolvedImageSource{Ref: "any"}}
	catalog.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeServing, Status: metav1.ConditionTrue}}
	plain := func() (*http.Client, error) { return http.DefaultClient, nil }
	return client.New(cache.NewFilesystemCache(folder), plain).PopulateCache(ctx, catalog)
}
