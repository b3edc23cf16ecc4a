// Lists tar archives with Go's archive/tar, the reader of container engines and catalogd.
//
// Standard input: archives, each after its size as four bytes, big endian. Standard output: one line for each archive, either
// "error" or the first eight hex digits of the SHA-256 of its list of entries. shared/oci/src/unpack/tar/tests/differential makes
// the archives and compares the lines with those of our reader.
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
)

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var size uint32
		err := binary.Read(in, binary.BigEndian, &size)
		if errors.Is(err, io.EOF) {
			return
		}
		archive := make([]byte, size)
		if err == nil {
			_, err = io.ReadFull(in, archive)
		}
		if err != nil {
			log.Fatal(err)
		}
		list, err := listed(archive)
		if err != nil {
			fmt.Fprintln(out, "error")
		} else {
			fmt.Fprintf(out, "%x\n", list[:4])
		}
	}
}

// listed returns the hash of the list of entries.
func listed(archive []byte) ([]byte, error) {
	// Buffered, because archive/tar seeks in a reader of bytes, and a layer is a stream.
	reader, hash := tar.NewReader(bufio.NewReader(bytes.NewReader(archive))), sha256.New()
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return hash.Sum(nil), nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case header.Typeflag == tar.TypeXGlobalHeader:
			// Engines skip it.
		case isSparse(header):
			fmt.Fprint(hash, "sparse\n")
		default:
			content, err := io.ReadAll(reader)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(hash, "%s\x00%s\x00%d\n", string([]byte{header.Typeflag})+header.Name, target(header), len(content))
			hash.Write(content)
		}
	}
}

func target(header *tar.Header) string {
	if header.Typeflag == tar.TypeLink || header.Typeflag == tar.TypeSymlink {
		return header.Linkname
	}
	return ""
}

// isSparse returns true for every entry that could be a sparse file. Our reader refuses them below the root of a catalog and
// skips them elsewhere, so only their position matters.
func isSparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return header.Typeflag == tar.TypeGNUSparse
}
