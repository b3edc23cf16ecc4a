package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/operator-framework/operator-registry/pkg/api"
)

// measurement is what bench prints, as one line of JSON.
type measurement struct {
	Workload string `json:"workload"`
	Clients  int    `json:"clients"`
	// Calls with those before the measurement begins, so that the CPU time of the server can be divided by it.
	Calls   int     `json:"calls"`
	Rate    float64 `json:"rate"`
	P50     float64 `json:"p50Ms"`
	P99     float64 `json:"p99Ms"`
	Failed  int     `json:"failed"`
	Example string  `json:"example,omitempty"`
}

// workload is a method and the requests from which each call draws one, with equal chances.
type workload struct {
	method   string
	requests []rawMessage
}

// Part of the time for which a server is asked before the measurement begins.
const warmUp = 5

// bench asks a server with some clients at a time, each with a connection of its own, and prints a measurement. WORKLOAD is
//
//	packages         GetPackage of all packages
//	bundles          GetBundle of all bundles, as ListBundles names them
//	bundles:PACKAGE  GetBundle of the bundles of one package
//	list             ListBundles
func bench(address, name string, clients int, duration time.Duration) {
	work := findWorkload(address, name)
	results := make([]clientResult, clients)
	var running sync.WaitGroup
	begin := time.Now().Add(duration / warmUp)
	end := begin.Add(duration)
	for at := range results {
		running.Go(func() { results[at] = work.run(address, begin, end) })
	}
	running.Wait()
	measured := measurement{Workload: name, Clients: clients}
	var times []time.Duration
	for _, result := range results {
		times = append(times, result.times...)
		measured.Calls += result.calls
		measured.Failed += result.failed
		measured.Rate += result.rate
		if result.example != "" {
			measured.Example = result.example
		}
	}
	if len(times) == 0 {
		log.Fatalf("no call succeeded: %s", measured.Example)
	}
	slices.Sort(times)
	at := func(part int) float64 { return times[(len(times)-1)*part/100].Seconds() * 1000 }
	measured.P50, measured.P99 = at(50), at(99)
	check(json.NewEncoder(os.Stdout).Encode(measured))
}

func findWorkload(address, name string) workload {
	name, wanted, _ := strings.Cut(name, ":")
	if name == "list" {
		return workload{"ListBundles", []rawMessage{{}}}
	}
	packages, bundles := set{}, []rawMessage{}
	connection := dial(address)
	defer connection.Close()
	for _, bundle := range listBundles(connection) {
		packages.add(bundle.PackageName)
		if wanted == "" || wanted == bundle.PackageName {
			request := &api.GetBundleRequest{PkgName: bundle.PackageName, ChannelName: bundle.ChannelName, CsvName: bundle.CsvName}
			bundles = append(bundles, raw(request))
		}
	}
	work := workload{"GetBundle", bundles}
	if name == "packages" {
		work = workload{method: "GetPackage"}
		for _, name := range packages.sorted() {
			work.requests = append(work.requests, raw(&api.GetPackageRequest{Name: name}))
		}
	}
	if len(work.requests) == 0 || (name != "packages" && name != "bundles") {
		log.Fatalf("there is no workload %s, or nothing to ask for", name)
	}
	return work
}

func raw(message proto.Message) rawMessage {
	bytes, err := proto.Marshal(message)
	check(err)
	return rawMessage{bytes}
}

type clientResult struct {
	times         []time.Duration
	calls, failed int
	rate          float64
	example       string
}

// run is one client. Calls that began before the measurement are not measured. A call that runs at the end is finished.
func (w workload) run(address string, begin, end time.Time) (result clientResult) {
	connection := dial(address)
	defer connection.Close()
	for now := time.Now(); now.Before(end) || len(result.times)+result.failed == 0; now = time.Now() {
		result.calls++
		request := w.requests[rand.IntN(len(w.requests))]
		err := receive(context.Background(), connection, "/api.Registry/"+w.method, request, func([]byte) {})
		switch {
		case err != nil:
			result.failed++
			result.example = err.Error()
		case !now.Before(begin):
			result.times = append(result.times, time.Since(now))
		}
	}
	result.rate = float64(len(result.times)) / time.Since(begin).Seconds()
	return result
}

// first starts a server, prints the milliseconds until it has answered GetPackage, and ends it.
func first(address, name string, command []string) {
	began := time.Now()
	server := exec.Command(command[0], command[1:]...)
	server.Stderr = os.Stderr
	check(server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	for {
		if socket, err := net.Dial("tcp", address); err == nil {
			socket.Close()
			break
		}
		select {
		case err := <-ended:
			log.Fatalf("the server ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	connection := dial(address)
	answer, err := api.NewRegistryClient(connection).GetPackage(context.Background(), &api.GetPackageRequest{Name: name})
	took := time.Since(began)
	connection.Close()
	_ = server.Process.Signal(syscall.SIGTERM)
	<-ended
	check(err)
	if answer.Name != name {
		log.Fatalf("the answer is about %q", answer.Name)
	}
	fmt.Printf("%.1f\n", took.Seconds()*1000)
}
