package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"net"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
)

// answer is a request and what the server says, one a line. Messages are base64 of protobuf; a long one is its sha256, unless
// OPM_ORACLE_FULL is set.
type answer struct {
	Method   string   `json:"method"`
	Request  string   `json:"request"`
	Code     string   `json:"code,omitempty"`
	Text     string   `json:"text,omitempty"`
	Messages []string `json:"messages,omitempty"`
	// True if any one of the messages is right, because opm answers at random.
	AnyOf bool `json:"anyOf,omitempty"`
}

const (
	shortMessage = 300
	// opm reads all bundles for each API, so large catalogs are asked for some of their APIs only.
	apisMax = 60
)

// load reads a catalog into the cache in a directory, or uses the cache if it is of this catalog.
func load(folder, directory string) cache.Cache {
	store, err := cache.New(directory)
	check(err)
	check(cache.LoadOrRebuild(context.Background(), store, os.DirFS(folder)))
	return store
}

func newServer(store cache.Cache) *grpc.Server {
	registry := grpc.NewServer(grpc.MaxRecvMsgSize(1<<28), grpc.MaxSendMsgSize(1<<30))
	api.RegisterRegistryServer(registry, server.NewRegistryServer(store))
	api.RegisterExperimentalRegistryServer(registry, server.NewExperimentalRegistryServer(store))
	grpc_health_v1.RegisterHealthServer(registry, server.NewHealthServer())
	return registry
}

func serveFolder(folder, address, directory string) {
	store := load(folder, directory)
	// A cache that is not closed is repaired at the next start, which takes longer.
	defer store.Close()
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", address)
	check(err)
	registry := newServer(store)
	go func() {
		<-ended.Done()
		registry.Stop()
	}()
	check(registry.Serve(listener))
}

// answerAll asks a server for every package, channel, bundle and API of the catalog, and for some that it does not have.
// Custom schemas are asked for by the environment OPM_ORACLE_CUSTOM: "schema/package schema/package".
func answerAll(folder string) {
	directory, err := os.MkdirTemp("", "opm")
	check(err)
	defer os.RemoveAll(directory)
	registry := newServer(load(folder, directory))
	defer registry.Stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() { _ = registry.Serve(listener) }()
	connection := dial(listener.Addr().String())
	defer connection.Close()

	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	asker{connection, func(answer answer) { check(encoder.Encode(answer)) }}.all()
}

// askAgain sends the requests of answers on standard input to another server. Prints the first answers that differ, and fails if one does.
func askAgain(address string) {
	connection := dial(address)
	defer connection.Close()
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	asker := asker{connection: connection}
	count, differ := 0, 0
	for ; in.More(); count++ {
		var expected answer
		check(in.Decode(&expected))
		request, err := base64.StdEncoding.DecodeString(expected.Request)
		check(err)
		said := asker.call(expected.Method, rawMessage{request})
		if expected.agrees(said) {
			continue
		}
		if differ++; differ <= 10 {
			fmt.Printf("expected: %.1500q\nis:       %.1500q\n", fmt.Sprint(expected), fmt.Sprint(said))
		}
	}
	fmt.Printf("%d of %d answers differ\n", differ, count)
	if differ > 0 || count == 0 {
		os.Exit(1)
	}
}

func (a answer) agrees(said answer) bool {
	if a.AnyOf {
		return said.Code == "" && len(said.Messages) == 1 && slices.Contains(a.Messages, said.Messages[0])
	}
	return reflect.DeepEqual(a, said)
}

type asker struct {
	connection *grpc.ClientConn
	emit       func(answer)
}

func (a asker) all() {
	a.ask("ListPackages", &api.ListPackageRequest{})
	a.ask("ListBundles", &api.ListBundlesRequest{})
	packages, channels, names, apis := set{}, set{}, set{}, set{}
	// Names of the bundles that replace or skip a bundle, by channel and name.
	replacements := map[string]map[string][]string{}
	for _, bundle := range listBundles(a.connection) {
		channel := bundle.PackageName + "/" + bundle.ChannelName
		packages.add(bundle.PackageName)
		channels.add(channel)
		names.add(bundle.CsvName)
		a.ask("GetBundle", &api.GetBundleRequest{PkgName: bundle.PackageName, ChannelName: bundle.ChannelName, CsvName: bundle.CsvName})
		if replacements[channel] == nil {
			replacements[channel] = map[string][]string{"absent": nil}
		}
		replacements[channel][bundle.CsvName] = append(replacements[channel][bundle.CsvName], []string{}...)
		for _, name := range append([]string{bundle.Replaces}, bundle.Skips...) {
			names.add(name)
			replacements[channel][name] = append(replacements[channel][name], bundle.CsvName)
		}
		for _, gvk := range bundle.ProvidedApis {
			apis.add(gvk.Group + "\x00" + gvk.Version + "\x00" + gvk.Kind)
		}
	}
	for _, name := range append(packages.sorted(), "", "absent", "a\"b\\c\nd\u00e9\u2028") {
		a.ask("GetPackage", &api.GetPackageRequest{Name: name})
		a.ask("GetBundle", &api.GetBundleRequest{PkgName: name, ChannelName: "absent", CsvName: "absent"})
		a.ask("GetBundleForChannel", &api.GetBundleInChannelRequest{PkgName: name, ChannelName: "absent"})
		a.ask("GetBundleThatReplaces", &api.GetReplacementRequest{PkgName: name, ChannelName: "absent", CsvName: "absent"})
	}
	for _, channel := range channels.sorted() {
		name, channelName, _ := strings.Cut(channel, "/")
		a.ask("GetBundleForChannel", &api.GetBundleInChannelRequest{PkgName: name, ChannelName: channelName})
		a.ask("GetBundle", &api.GetBundleRequest{PkgName: name, ChannelName: channelName, CsvName: "absent\x01"})
		for _, bundle := range slices.Sorted(maps.Keys(replacements[channel])) {
			request := &api.GetReplacementRequest{PkgName: name, ChannelName: channelName, CsvName: bundle}
			a.askReplacement(request, replacements[channel][bundle])
		}
	}
	for _, name := range append(names.sorted(), "absent", "") {
		a.ask("GetChannelEntriesThatReplace", &api.GetAllReplacementsRequest{CsvName: name})
	}
	gvks := apis.sorted()
	step := len(gvks)/apisMax + 1
	for at := 0; at < len(gvks); at += step {
		a.askProviders(strings.Split(gvks[at], "\x00"))
	}
	a.askProviders([]string{"absent", "v1", "Absent\"<>"})
	a.askProviders([]string{"", "", ""})
	customs := strings.Fields(os.Getenv("OPM_ORACLE_CUSTOM"))
	for _, custom := range append(customs, "/", "absent/", "absent/absent", "../x/", "ok/..", "\u00e9/a", "olm.bundle/") {
		schema, name, _ := strings.Cut(custom, "/")
		a.ask("ExperimentalListPackageCustomSchemas", &api.ExperimentalListPackageCustomSchemasRequest{Schema: schema, PackageName: name})
	}
}

func (a asker) askProviders(gvk []string) {
	a.ask("GetChannelEntriesThatProvide", &api.GetAllProvidersRequest{Group: gvk[0], Version: gvk[1], Kind: gvk[2], Plural: "ignored"})
	a.ask("GetLatestChannelEntriesThatProvide", &api.GetLatestProvidersRequest{Group: gvk[0], Version: gvk[1], Kind: gvk[2]})
	a.ask("GetDefaultBundleThatProvides", &api.GetDefaultProviderRequest{Group: gvk[0], Version: gvk[1], Kind: gvk[2]})
}

func (a asker) ask(method string, request proto.Message) { a.emit(a.call(method, request)) }

// askReplacement asks for a bundle that replaces another one. If there are several, opm takes any of them.
func (a asker) askReplacement(request *api.GetReplacementRequest, names []string) {
	said := a.call("GetBundleThatReplaces", request)
	if len(names) > 1 {
		said.AnyOf = true
		for _, name := range names {
			bundle := a.call("GetBundle", &api.GetBundleRequest{PkgName: request.PkgName, ChannelName: request.ChannelName, CsvName: name})
			said.Messages = append(said.Messages, bundle.Messages...)
		}
		slices.Sort(said.Messages)
		said.Messages = slices.Compact(said.Messages)
	}
	a.emit(said)
}

// call sends a request and collects what comes.
func (a asker) call(method string, request any) answer {
	service := "api.Registry"
	if strings.HasPrefix(method, "Experimental") {
		service = "api.ExperimentalRegistry"
	}
	said := answer{Method: method, Request: encode(request)}
	callContext := metadata.AppendToOutgoingContext(context.Background(), "x-acknowledge-experimental", "true")
	err := receive(callContext, a.connection, fmt.Sprintf("/%s/%s", service, method), request, func(message []byte) {
		if strings.HasPrefix(method, "Experimental") {
			message = sortKeys(message)
		}
		said.Messages = append(said.Messages, shorten(message))
	})
	if err != nil {
		state := status.Convert(err)
		said.Code, said.Text = state.Code().String(), state.Message()
	}
	slices.Sort(said.Messages)
	return said
}

// sortKeys encodes a google.protobuf.Struct in one of its many forms.
func sortKeys(message []byte) []byte {
	var object structpb.Struct
	check(proto.Unmarshal(message, &object))
	sorted, err := proto.MarshalOptions{Deterministic: true}.Marshal(&object)
	check(err)
	return sorted
}

func encode(message any) string {
	bytes, err := rawCodec{}.Marshal(message)
	check(err)
	return base64.StdEncoding.EncodeToString(bytes.Materialize())
}

func shorten(message []byte) string {
	if len(message) <= shortMessage || os.Getenv("OPM_ORACLE_FULL") != "" {
		return base64.StdEncoding.EncodeToString(message)
	}
	hash := sha256.Sum256(message)
	return "sha256:" + hex.EncodeToString(hash[:])
}

type set map[string]struct{}

func (s set) add(item string) { s[item] = struct{}{} }

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
