package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

// answerInputs reads inputs from standard input, each after its size as four bytes, big endian. It prints a line for each: the answer,
// or "error". The differential tests of shared/core/fbc and shared/core/oci make the inputs and compare the answers.
func answerInputs(answer func([]byte) (string, error)) {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var size uint32
		err := binary.Read(in, binary.BigEndian, &size)
		if errors.Is(err, io.EOF) {
			return
		}
		check(err)
		input := make([]byte, size)
		_, err = io.ReadFull(in, input)
		check(err)
		line, err := answer(input)
		if err != nil {
			line = "error"
		}
		fmt.Fprintln(out, line)
	}
}

// lines returns the lines of a file of FBC as catalogd stores and serves them, with a space between them.
func lines(file []byte) (answer string, err error) {
	// Some malformed documents make the YAML library panic, which ends catalogd.
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("panic: %v", recovered)
		}
	}()
	var all [][]byte
	err = declcfg.WalkMetasReader(bytes.NewReader(file), func(meta *declcfg.Meta, err error) error {
		if err == nil {
			all = append(all, bytes.TrimRight(meta.Blob, "\n"))
		}
		return err
	})
	return string(bytes.Join(all, []byte(" "))), err
}

// entries returns the first eight hex digits of the SHA-256 of the list of entries of an archive, as archive/tar reads it, which is the
// reader of container engines and catalogd.
func entries(archive []byte) (string, error) {
	// Buffered, because archive/tar seeks in a reader of bytes, and a layer is a stream.
	reader, hash := tar.NewReader(bufio.NewReader(bytes.NewReader(archive))), sha256.New()
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Sprintf("%x", hash.Sum(nil)[:4]), nil
		}
		if err != nil {
			return "", err
		}
		switch {
		case header.Typeflag == tar.TypeXGlobalHeader:
			// Engines skip it.
		case isSparse(header):
			fmt.Fprint(hash, "sparse\n")
		default:
			content, err := io.ReadAll(reader)
			if err != nil {
				return "", err
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

// countAll makes of a folder what OLM resolves, and prints the numbers of packages, channels and bundles.
func countAll(folder string) {
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(folder))
	check(err)
	model, err := declcfg.ConvertToModel(*config)
	check(err)
	channels, bundles := 0, 0
	for _, pkg := range model {
		channels += len(pkg.Channels)
		for _, channel := range pkg.Channels {
			bundles += len(channel.Bundles)
		}
	}
	fmt.Println(len(model), channels, bundles)
}
