// Command alignment pairs the layers of two saved profiles and lists the pairs.
//
//	go run ./bench/alignment A.json B.json
package main

import (
	"fmt"
	"os"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

func main() {
	a, err := profile.Read(os.Args[1])
	if err == nil {
		var b *profile.Profile
		if b, err = profile.Read(os.Args[2]); err == nil {
			list(a, b)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "alignment:", err)
		os.Exit(1)
	}
}

func list(a, b *profile.Profile) {
	for _, p := range align.Layers(a, b) {
		fmt.Printf("%-9s %-5v", p.Kind, p.Certain)
		for _, i := range p.A {
			fmt.Printf(" %d:%s", i, a.Layers[i].Op)
		}
		fmt.Print("  |")
		for _, i := range p.B {
			fmt.Printf(" %d:%s", i, b.Layers[i].Op)
		}
		fmt.Println()
	}
}
