// Asks opm itself, operator-registry, for a second opinion.
//
//	opm-oracle validate              catalogs on standard input, as validate.go describes
//	opm-oracle answers FOLDER        all answers of the registry API about the catalog in a folder, as answers.go describes
//	opm-oracle ask ADDRESS           the same requests, which standard input has, to a server that runs
//	opm-oracle serve FOLDER ADDRESS  the registry API over gRPC
package main

import (
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	arguments := os.Args[1:]
	switch {
	case len(arguments) == 1 && arguments[0] == "validate":
		validateAll()
	case len(arguments) == 2 && arguments[0] == "answers":
		answerAll(arguments[1])
	case len(arguments) == 2 && arguments[0] == "ask":
		askAgain(arguments[1])
	case len(arguments) == 3 && arguments[0] == "serve":
		serveFolder(arguments[1], arguments[2])
	default:
		log.Fatal("opm-oracle validate | answers FOLDER | ask ADDRESS | serve FOLDER ADDRESS")
	}
}
