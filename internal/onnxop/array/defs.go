package array

import "github.com/opmeter/opmeter/internal/op"

// Defs lists the operators of this package.
func Defs() []op.Def { return nil }
