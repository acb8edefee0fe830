package liteop

import (
	"slices"

	"github.com/opmeter/opmeter/internal/liteop/activation"
	"github.com/opmeter/opmeter/internal/liteop/arith"
	"github.com/opmeter/opmeter/internal/liteop/conv"
	"github.com/opmeter/opmeter/internal/liteop/matmul"
	"github.com/opmeter/opmeter/internal/liteop/pool"
	"github.com/opmeter/opmeter/internal/liteop/quant"
	"github.com/opmeter/opmeter/internal/liteop/recurrent"
	"github.com/opmeter/opmeter/internal/liteop/reduce"
	"github.com/opmeter/opmeter/internal/op"
)

func allDefs() []op.Def {
	return slices.Concat(conv.Defs(), matmul.Defs(), pool.Defs(), activation.Defs(), reduce.Defs(), recurrent.Defs(), arith.Defs(), quant.Defs())
}
