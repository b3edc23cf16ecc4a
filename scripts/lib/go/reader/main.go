// Command reader changes ClusterCatalogs and reads them as operator-controller does: it waits for the status, follows status.urls.base
// over TLS with the authority of the cluster, and compares what it read with resolvedSource.image.ref. Each read goes to the next
// replica, as by a Service.
//
//	reader -api URL -api-ca FILE -token TOKEN -ca FILE -replicas FILE -refs FILE -catalogs N -updates N
//
// -replicas names a file with the addresses of the ready replicas, one a line, which is read again for each read. -refs names a file
// with lines `REF SHA256`: an image and the hash of its content. Prints one object of JSON.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type image struct{ ref, hash string }

type catalog struct {
	Status struct {
		ResolvedSource struct {
			Image struct {
				Ref string `json:"ref"`
			} `json:"image"`
		} `json:"resolvedSource"`
		URLs struct {
			Base string `json:"base"`
		} `json:"urls"`
	} `json:"status"`
}

type result struct {
	Updates  int      `json:"updates"`
	Reads    int64    `json:"reads"`
	Wrong    int64    `json:"wrong"`
	Failed   int64    `json:"failed"`
	Retried  int64    `json:"retried"`
	Late     int64    `json:"late"`
	Stale    int64    `json:"stale"`
	Broken   int64    `json:"broken"`
	MedianMs int64    `json:"medianMs"`
	P99Ms    int64    `json:"p99Ms"`
	MaxMs    int64    `json:"maxMs"`
	Notes    []string `json:"notes"`
}

type program struct {
	api, token, replicas string
	cluster, catalogs    *http.Client
	images               []image
	next                 atomic.Int64
	mutex                sync.Mutex
	waits                []int64
	result               result
}

func main() {
	p := &program{}
	var apiCA, ca, refs string
	var count, updates int
	flag.StringVar(&p.api, "api", "", "URL of the API server")
	flag.StringVar(&apiCA, "api-ca", "", "its authority")
	flag.StringVar(&p.token, "token", "", "token of an administrator")
	flag.StringVar(&ca, "ca", "", "authority of the replicas")
	flag.StringVar(&p.replicas, "replicas", "", "file with addresses")
	flag.StringVar(&refs, "refs", "", "file with images and hashes")
	flag.IntVar(&count, "catalogs", 1, "number of catalogs that change at a time")
	flag.IntVar(&updates, "updates", 1, "updates of each catalog")
	flag.Parse()
	for _, line := range lines(refs) {
		fields := strings.Fields(line)
		p.images = append(p.images, image{fields[0], fields[1]})
	}
	p.cluster = &http.Client{Transport: &http.Transport{TLSClientConfig: trust(apiCA)}, Timeout: 30 * time.Second}
	// No connection is kept, so that each read goes to another replica.
	transport := &http.Transport{TLSClientConfig: trust(ca), DialContext: p.dial, DisableKeepAlives: true}
	p.catalogs = &http.Client{Transport: transport, Timeout: 60 * time.Second}
	var group sync.WaitGroup
	for index := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			p.change(fmt.Sprintf("changing-%d", index), index, updates)
		}()
	}
	group.Wait()
	sort.Slice(p.waits, func(a, b int) bool { return p.waits[a] < p.waits[b] })
	p.result.Updates = len(p.waits)
	if len(p.waits) > 0 {
		p.result.MedianMs = p.waits[len(p.waits)/2]
		p.result.P99Ms = p.waits[len(p.waits)*99/100]
		p.result.MaxMs = p.waits[len(p.waits)-1]
	}
	json.NewEncoder(os.Stdout).Encode(p.result)
}

func lines(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func trust(path string) *tls.Config {
	pem, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots}
}

// dial connects to the next replica, whatever the name in the URL is.
func (p *program) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	replicas := lines(p.replicas)
	address := replicas[int(p.next.Add(1))%len(replicas)]
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// change gives one catalog one image after the other. After each change of the status it reads from as many replicas as there are.
// A replica sees the status when its watch brings it, and serves the image before until then: for five seconds that is stale, not wrong.
func (p *program) change(name string, offset, updates int) {
	previous := ""
	for update := range updates {
		image := p.images[(offset+update)%len(p.images)]
		began := time.Now()
		if err := p.patch(name, image.ref); err != nil {
			p.note(&p.result.Failed, "%s: %v", name, err)
			continue
		}
		base := p.wait(name, image.ref)
		if base == "" {
			p.note(&p.result.Late, "%s: no status names %s after two minutes", name, image.ref)
			continue
		}
		p.mutex.Lock()
		p.waits = append(p.waits, time.Since(began).Milliseconds())
		p.mutex.Unlock()
		named := time.Now()
		for range lines(p.replicas) {
			hash, err := p.read(base)
			for err == nil && hash != image.hash && (hash == previous || update == 0) && time.Since(named) < 5*time.Second {
				atomic.AddInt64(&p.result.Stale, 1)
				time.Sleep(100 * time.Millisecond)
				hash, err = p.read(base)
			}
			atomic.AddInt64(&p.result.Reads, 1)
			if err != nil {
				p.note(&p.result.Failed, "%s: %v", name, err)
				continue
			}
			if hash != image.hash {
				p.note(&p.result.Wrong, "%s: %s has the content of another image", name, image.ref)
			}
		}
		previous = image.hash
	}
}

func (p *program) note(counter *int64, format string, values ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	*counter++
	if len(p.result.Notes) < 10 {
		p.result.Notes = append(p.result.Notes, fmt.Sprintf(format, values...))
	}
}

func (p *program) request(method, name string, body []byte) ([]byte, error) {
	url := p.api + "/apis/olm.operatorframework.io/v1/clustercatalogs/" + name
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := p.cluster.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return text, err
}

func (p *program) patch(name, ref string) error {
	patch := fmt.Sprintf(`{"spec":{"source":{"image":{"ref":%q}}}}`, ref)
	_, err := p.request(http.MethodPatch, name, []byte(patch))
	return err
}

// wait returns the base URL once the status names the image.
func (p *program) wait(name, ref string) string {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var found catalog
		text, err := p.request(http.MethodGet, name, nil)
		if err == nil && json.Unmarshal(text, &found) == nil && found.Status.ResolvedSource.Image.Ref == ref {
			return found.Status.URLs.Base
		}
	}
	return ""
}

// read returns the hash of the content. It tries again where an answer asks for that, and after a connection that broke, as
// operator-controller does after any error.
func (p *program) read(base string) (string, error) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		response, err := p.catalogs.Get(base + "/api/v1/all")
		hash := sha256.New()
		if err == nil {
			_, err = io.Copy(hash, response.Body)
			response.Body.Close()
		}
		if err != nil && time.Now().Before(end) {
			atomic.AddInt64(&p.result.Broken, 1)
			continue
		}
		if err != nil {
			return "", err
		}
		if response.StatusCode == http.StatusOK {
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" || time.Now().After(end) {
			return "", fmt.Errorf("%s", response.Status)
		}
		atomic.AddInt64(&p.result.Retried, 1)
	}
}
