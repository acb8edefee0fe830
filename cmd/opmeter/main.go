// Command opmeter profiles neural-network models: where their time, memory and
// energy go.
package main

import (
	"os"

	"github.com/opmeter/opmeter/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
