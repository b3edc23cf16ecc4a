// Asks opm itself, operator-registry, for a second opinion, and servers of the registry API under load. It is built inside the module of
// operator-registry.
//
//	opm-oracle validate                      catalogs on standard input, as validate.go describes
//	opm-oracle count FOLDER                  numbers of packages, channels and bundles that OLM finds in a folder
//	opm-oracle lines                         canonical lines of files, as differential.go describes
//	opm-oracle entries                       entries of tar archives, as differential.go describes
//	opm-oracle answers FOLDER                all answers of the registry API about the catalog in a folder, as answers.go describes
//	opm-oracle ask ADDRESS                   the same requests, which standard input has, to a server that runs; fails if an answer differs
//	opm-oracle graph FOLDER                  the edges that `opm alpha render-graph` draws, as graph.go describes
//	opm-oracle serve FOLDER ADDRESS CACHE    the registry API over gRPC; a cache that is there already is used, as opm uses it
//
// Of a server that runs, as bench.go describes:
//
//	opm-oracle bench ADDRESS WORKLOAD CLIENTS SECONDS
//	opm-oracle first ADDRESS PACKAGE COMMAND...
//
// And as hold.go describes:
//
//	opm-oracle hold ADDRESS CONNECTIONS SECONDS
package main

import (
	"log"
	"os"
	"strconv"
	"time"
)

func main() {
	log.SetFlags(0)
	command, arguments := "", os.Args[1:]
	if len(arguments) > 0 {
		command, arguments = arguments[0], arguments[1:]
	}
	switch count := len(arguments); {
	case command == "validate" && count == 0:
		validateAll()
	case command == "count" && count == 1:
		countAll(arguments[0])
	case command == "lines" && count == 0:
		answerInputs(lines)
	case command == "entries" && count == 0:
		answerInputs(entries)
	case command == "answers" && count == 1:
		answerAll(arguments[0])
	case command == "graph" && count == 1:
		printGraph(arguments[0])
	case command == "ask" && count == 1:
		askAgain(arguments[0])
	case command == "serve" && count == 3:
		serveFolder(arguments[0], arguments[1], arguments[2])
	case command == "bench" && count == 4:
		bench(arguments[0], arguments[1], number(arguments[2]), seconds(arguments[3]))
	case command == "first" && count >= 3:
		first(arguments[0], arguments[1], arguments[2:])
	case command == "hold" && count == 3:
		hold(arguments[0], number(arguments[1]), seconds(arguments[2]))
	default:
		log.Fatal("the arguments are described at the top of main.go")
	}
}

func number(text string) int {
	number, err := strconv.Atoi(text)
	check(err)
	return number
}

func seconds(text string) time.Duration {
	number, err := strconv.ParseFloat(text, 64)
	check(err)
	return time.Duration(number * float64(time.Second))
}
