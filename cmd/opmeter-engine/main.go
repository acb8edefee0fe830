// Command opmeter-engine opens the library of another engine and runs models with it, for
// opmeter, which starts it. It is not for people: everything is asked and told over pipes.
package main

import (
	"fmt"
	"os"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/external/child"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Printf("opmeter-engine %s: opmeter starts it to run models with other engines, there is nothing to do with it by hand.\n", buildinfo.Version())
		return
	}
	out, err := child.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "opmeter-engine:", err)
		os.Exit(1)
	}
	child.Serve(os.Stdin, out, engines, os.Exit)
}
