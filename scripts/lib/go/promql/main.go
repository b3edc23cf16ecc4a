// Parses PromQL as Prometheus does: an expression from each line of standard input.
//
// Prints the names of the metrics that they select, one a line. Fails with the first expression that is wrong.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		expression, err := parser.ParseExpr(lines.Text())
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", lines.Text(), err)
			os.Exit(1)
		}
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			if selector, found := node.(*parser.VectorSelector); found {
				fmt.Println(selector.Name)
			}
			return nil
		})
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
