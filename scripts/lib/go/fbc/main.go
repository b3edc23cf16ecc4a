// Reads FBC as the tools of OLM do: a second opinion on what the mirror makes of it.
//
// With a folder as argument, it makes of the folder what OLM resolves, and prints the numbers of packages, channels and
// bundles.
//
// Without argument, standard input holds files, each after its size as four bytes, big endian. Standard output is one line
// for each file: "error", or the lines that catalogd would serve, with a space between them. The tests of shared/fbc make
// the files and compare the answers.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

func main() {
	log.SetFlags(0)
	var err error
	if len(os.Args) > 1 {
		err = count(os.Args[1])
	} else {
		err = answerAll(bufio.NewReader(os.Stdin))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func count(folder string) error {
	config, err := declcfg.LoadFS(context.Background(), os.DirFS(folder))
	if err != nil {
		return err
	}
	model, err := declcfg.ConvertToModel(*config)
	if err != nil {
		return err
	}
	channels, bundles := 0, 0
	for _, pkg := range model {
		channels += len(pkg.Channels)
		for _, channel := range pkg.Channels {
			bundles += len(channel.Bundles)
		}
	}
	fmt.Println(len(model), channels, bundles)
	return nil
}

func answerAll(in io.Reader) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var size uint32
		err := binary.Read(in, binary.BigEndian, &size)
		if errors.Is(err, io.EOF) {
			return nil
		}
		file := make([]byte, size)
		if err == nil {
			_, err = io.ReadFull(in, file)
		}
		if err != nil {
			return err
		}
		answer, err := lines(file)
		if err != nil {
			answer = []byte("error")
		}
		out.Write(append(answer, '\n'))
	}
}

// lines returns the lines of a file as catalogd stores them.
func lines(file []byte) (answer []byte, err error) {
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
	return bytes.Join(all, []byte(" ")), err
}
