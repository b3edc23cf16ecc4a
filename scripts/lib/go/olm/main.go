// Command olm prints the steps that OLM v0 takes, asked of its own resolver one step after the other.
//
//	olm FOLDER
//
// FOLDER is a file-based catalog. For every entry of every channel it prints a line `package channel from`, with tabs between, and then
// each step. An entry whose channel OLM refuses has the line `package channel from !`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver"
	"github.com/operator-framework/operator-lifecycle-manager/pkg/controller/registry/resolver/cache"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const namespace = "n"

var (
	catalog   = cache.SourceKey{Name: "c", Namespace: namespace}
	installed = cache.NewVirtualSourceKey(namespace)
)

// entries returns the entries of a channel as OLM reads them from a catalog, without what they require of other packages.
func entries(channel declcfg.Channel, versions map[string]*semver.Version) []*cache.Entry {
	var all []*cache.Entry
	for _, entry := range channel.Entries {
		read := &cache.Entry{
			Name: entry.Name, Replaces: entry.Replaces, Skips: entry.Skips, Version: versions[entry.Name],
			SourceInfo: &cache.OperatorSourceInfo{Package: channel.Package, Channel: channel.Name, Catalog: catalog},
		}
		if skipped, err := semver.ParseRange(entry.SkipRange); err == nil {
			read.SkipRange = skipped
		}
		all = append(all, read)
	}
	return all
}

// step returns the name of the entry to which OLM updates an installed one: the same if there is none.
func step(channel declcfg.Channel, all []*cache.Entry, name string, version *semver.Version) (string, error) {
	subscription := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: namespace},
		Spec: &v1alpha1.SubscriptionSpec{
			CatalogSource: catalog.Name, CatalogSourceNamespace: namespace, Package: channel.Package, Channel: channel.Name,
		},
		Status: v1alpha1.SubscriptionStatus{InstalledCSV: name},
	}
	current := &cache.Entry{
		Name: name, Version: version, SourceInfo: &cache.OperatorSourceInfo{Catalog: installed, Subscription: subscription},
	}
	sources := cache.StaticSourceProvider{
		catalog:   &cache.Snapshot{Entries: all},
		installed: &cache.Snapshot{Entries: []*cache.Entry{current}},
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	found, err := resolver.NewDefaultResolver(cache.New(sources), log).Resolve([]string{namespace}, []*v1alpha1.Subscription{subscription})
	if err != nil || len(found) == 0 {
		return name, err
	}
	return found[0].Name, nil
}

func main() {
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(os.Args[1]))
	if err != nil {
		panic(err)
	}
	versions := map[string]map[string]*semver.Version{}
	for _, bundle := range config.Bundles {
		for _, one := range bundle.Properties {
			var value property.Package
			if one.Type != property.TypePackage || json.Unmarshal(one.Value, &value) != nil {
				continue
			}
			if version, err := semver.ParseTolerant(value.Version); err == nil {
				if versions[bundle.Package] == nil {
					versions[bundle.Package] = map[string]*semver.Version{}
				}
				versions[bundle.Package][bundle.Name] = &version
			}
		}
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, channel := range config.Channels {
		known := versions[channel.Package]
		all, next := entries(channel, known), map[string]string{}
		for _, entry := range channel.Entries {
			if known[entry.Name] == nil {
				continue
			}
			way := []string{channel.Package, channel.Name, entry.Name}
			for at := entry.Name; ; {
				if next[at] == "" {
					if next[at], err = step(channel, all, at, known[at]); err != nil {
						next[at] = "!"
					}
				}
				at = next[at]
				if at == "!" {
					way = append(way[:3], at)
					break
				}
				if slices.Contains(way[2:], at) {
					break
				}
				way = append(way, at)
			}
			fmt.Fprintln(out, strings.Join(way, "\t"))
		}
	}
}
