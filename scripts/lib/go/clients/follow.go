package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	ocv1 "github.com/operator-framework/operator-controller/api/v1"
	"github.com/operator-framework/operator-controller/internal/operator-controller/catalogmetadata/cache"
	"github.com/operator-framework/operator-controller/internal/operator-controller/catalogmetadata/client"
)

// follower does with a ClusterCatalog what operator-controller does before it resolves anything: when its status names another image,
// it reads the catalog once, and keeps that for as long as the status names the image.
type follower struct {
	kube.Client
	held interface {
		Get(name, reference string) (fs.FS, error)
		Remove(name string) error
	}
	reader *client.Client
}

func (f *follower) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	catalog := &ocv1.ClusterCatalog{}
	if err := f.Get(ctx, request.NamespacedName, catalog); err != nil {
		_ = f.held.Remove(request.Name)
		return ctrl.Result{}, kube.IgnoreNotFound(err)
	}
	source := catalog.Status.ResolvedSource
	if source == nil || source.Image == nil || source.Image.Ref == "" {
		return ctrl.Result{}, nil
	}
	reference := source.Image.Ref
	if files, err := f.held.Get(catalog.Name, reference); err == nil && files != nil {
		return ctrl.Result{}, nil
	}
	files, err := f.reader.PopulateCache(ctx, catalog)
	if err != nil {
		fmt.Println("refused", catalog.Name, reference, err)
		return ctrl.Result{}, err
	}
	_, hash, err := hashOf(files)
	fmt.Println("holds", catalog.Name, reference, hash)
	return ctrl.Result{}, err
}

// follow follows all ClusterCatalogs of $KUBECONFIG until it is told to end.
func follow(authority, replicas, folder string) error {
	log.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	if err := ocv1.AddToScheme(scheme); err != nil {
		return err
	}
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(access, ctrl.Options{Scheme: scheme, Metrics: metrics.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	// A connection for each read, as operator-controller has. A Service chooses the replica by chance.
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		ready, err := os.ReadFile(replicas)
		if err != nil {
			return nil, err
		}
		addresses := strings.Fields(string(ready))
		return (&net.Dialer{}).DialContext(ctx, network, addresses[rand.IntN(len(addresses))])
	}
	connect := func() (*http.Client, error) {
		trust := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DialContext: dial}}, nil
	}
	held := cache.NewFilesystemCache(folder)
	reconciler := &follower{manager.GetClient(), held, client.New(held, connect)}
	if err := ctrl.NewControllerManagedBy(manager).For(&ocv1.ClusterCatalog{}).Complete(reconciler); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
