package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/client"
)

// Connections that hold opens at a time.
const opening = 64

// Smallest window that the library lets a client ask for, in bytes.
const smallestWindow = 64 << 10

// Time between two messages that a slow reader of streams takes.
const slowness = 100 * time.Millisecond

// Property of the bundles of a catalog for readStreams: it has the same value in all of them, and another one in each publication.
const stateProperty = "test.state"

// useClient calls each method of operator-registry's own client, unmodified, and prints what it says of the catalog. With a file of
// certificates it speaks TLS.
func useClient(address, authorities string) {
	ctx := context.Background()
	registry, err := client.NewClient(address)
	if authorities != "" {
		tls, tlsErr := credentials.NewClientTLSFromFile(authorities, "")
		check(tlsErr)
		connection, tlsErr := grpc.NewClient(address, grpc.WithTransportCredentials(tls))
		check(tlsErr)
		registry = client.NewClientFromConn(connection)
	}
	check(err)
	defer registry.Close()
	out := json.NewEncoder(os.Stdout)
	tell := func(method, said string, err error) {
		if err != nil {
			said = err.Error()
		}
		check(out.Encode(map[string]any{"method": method, "ok": err == nil, "said": said}))
	}
	healthy, err := registry.HealthCheck(ctx, time.Second)
	tell("HealthCheck", fmt.Sprint(healthy), err)

	bundles, err := registry.ListBundles(ctx)
	check(err)
	count, one := 0, &api.Bundle{}
	var replaced, provider *api.Bundle
	for bundle := bundles.Next(); bundle != nil; bundle = bundles.Next() {
		count, one = count+1, bundle
		if bundle.Replaces != "" {
			replaced = bundle
		}
		if len(bundle.ProvidedApis) > 0 {
			provider = bundle
		}
	}
	tell("ListBundles", fmt.Sprint(count), bundles.Error())
	found, err := registry.GetPackage(ctx, one.PackageName)
	tell("GetPackage", found.GetName(), err)
	bundle, err := registry.GetBundle(ctx, one.PackageName, one.ChannelName, one.CsvName)
	tell("GetBundle", bundle.GetCsvName(), err)
	bundle, err = registry.GetBundleInPackageChannel(ctx, one.PackageName, one.ChannelName)
	tell("GetBundleInPackageChannel", bundle.GetPackageName(), err)
	if replaced != nil {
		bundle, err = registry.GetReplacementBundleInPackageChannel(ctx, replaced.Replaces, replaced.PackageName, replaced.ChannelName)
		tell("GetReplacementBundleInPackageChannel", bundle.GetPackageName(), err)
	}
	if provider != nil {
		gvk := provider.ProvidedApis[0]
		bundle, err = registry.GetBundleThatProvides(ctx, gvk.Group, gvk.Version, gvk.Kind)
		tell("GetBundleThatProvides", bundle.GetPackageName(), err)
	}
}

// holder counts what becomes of connections that are held.
type holder struct {
	Connections int   `json:"connections"`
	Lost        int64 `json:"lost"`
	Answered    int64 `json:"answered"`
}

// hold opens connections, and makes one call on every other one. Then none of them does anything but to answer pings. It prints `held`
// when all are open, and after the time how many were lost meanwhile, and how many answer a call.
func hold(address string, connections int, duration time.Duration) {
	held := holder{Connections: connections}
	ctx, cancel := context.WithCancel(context.Background())
	// What a connection buffers here is not what is measured, but ten thousand of them share a machine with the server.
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(),
		grpc.WithReadBufferSize(512), grpc.WithWriteBufferSize(512), grpc.WithSharedWriteBuffer(true),
	}
	clients := make([]*grpc.ClientConn, connections)
	each := func(do func(at int)) {
		var running sync.WaitGroup
		places := make(chan struct{}, opening)
		for at := range clients {
			places <- struct{}{}
			running.Go(func() { do(at); <-places })
		}
		running.Wait()
	}
	healthy := func(connection *grpc.ClientConn) bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answer, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err == nil && answer.Status == grpc_health_v1.HealthCheckResponse_SERVING
	}
	open := func(connection *grpc.ClientConn) {
		for state := connection.GetState(); state != connectivity.Ready; state = connection.GetState() {
			// Again too, if the server has closed it.
			connection.Connect()
			if !connection.WaitForStateChange(ctx, state) {
				return
			}
		}
	}
	each(func(at int) {
		connection, err := grpc.NewClient("passthrough:///"+address, options...)
		check(err)
		clients[at] = connection
		open(connection)
		if at%2 == 0 && !healthy(connection) {
			atomic.AddInt64(&held.Lost, 1)
		}
	})
	for _, connection := range clients {
		go func() {
			for connection.WaitForStateChange(ctx, connectivity.Ready) {
				atomic.AddInt64(&held.Lost, 1)
				open(connection)
			}
		}()
	}
	fmt.Println("held")
	time.Sleep(duration)
	cancel()
	each(func(at int) {
		if healthy(clients[at]) {
			atomic.AddInt64(&held.Answered, 1)
		}
	})
	check(json.NewEncoder(os.Stdout).Encode(held))
}

// stall begins a stream of ListBundles on each of some connections, and reads nothing of it until SIGTERM comes. It prints `stalled`
// and their number when all have begun.
func stall(address string, connections int) {
	var opened atomic.Int64
	var starting sync.WaitGroup
	for range connections {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithInitialWindowSize(smallestWindow), grpc.WithInitialConnWindowSize(1<<30))
		check(err)
		starting.Go(func() {
			stream, err := api.NewRegistryClient(connection).ListBundles(context.Background(), &api.ListBundlesRequest{})
			if err == nil {
				_, err = stream.Header()
			}
			if err == nil {
				opened.Add(1)
			}
		})
	}
	starting.Wait()
	fmt.Println("stalled", opened.Load())
	awaitEnd()
}

// awaitEnd waits until the process is asked to end.
func awaitEnd() {
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ended.Done()
}

// streamed is one stream of ListBundles that was read to its end.
type streamed struct {
	Bundles int    `json:"bundles"`
	State   string `json:"state"`
	mixed   bool
}

// readStreams reads streams of ListBundles until SIGTERM comes: some readers as fast as they can, one stream after the
// other, and one reader so slowly that its stream lasts for the whole time. It prints what the slow reader got, and how many
// streams the others read, how many of them had bundles of two states, and how many states they saw.
func readStreams(address string, readers int) {
	done := make(chan struct{})
	begun := make(chan struct{})
	var running sync.WaitGroup
	var slow streamed
	running.Go(func() {
		slow = readStream(address, func(count int) {
			if count == 1 {
				close(begun)
			}
			select {
			case <-done:
			case <-time.After(slowness):
			}
		})
	})
	<-begun
	var mutex sync.Mutex
	streams, mixed, states := 0, 0, set{}
	for range readers {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				read := readStream(address, func(int) {})
				mutex.Lock()
				streams++
				states.add(fmt.Sprintf("%d bundles of %s", read.Bundles, read.State))
				if read.mixed {
					mixed++
				}
				mutex.Unlock()
			}
		})
	}
	fmt.Println("begun")
	awaitEnd()
	close(done)
	running.Wait()
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"slow": slow, "slowMixed": slow.mixed, "streams": streams, "mixed": mixed, "states": states.sorted(),
	}))
}

// readStream reads one stream with a small window, and calls a function after each message.
func readStream(address string, after func(count int)) streamed {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(smallestWindow), grpc.WithInitialConnWindowSize(smallestWindow))
	check(err)
	defer connection.Close()
	stream, err := api.NewRegistryClient(connection).ListBundles(context.Background(), &api.ListBundlesRequest{})
	check(err)
	var read streamed
	for {
		bundle, err := stream.Recv()
		if err != nil {
			if err != io.EOF {
				check(fmt.Errorf("after %d bundles: %w", read.Bundles, err))
			}
			return read
		}
		for _, property := range bundle.Properties {
			if property.Type != stateProperty {
				continue
			}
			read.mixed = read.mixed || (read.Bundles > 0 && read.State != property.Value)
			read.State = property.Value
		}
		read.Bundles++
		after(read.Bundles)
	}
}
