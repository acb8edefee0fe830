// Package operators registers every operator of the engine.
package operators

import (
	_ "embed" // for the tables
	"sync"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	onnxarray "github.com/opmeter/opmeter/internal/runtime/onnxop/array"
	onnxattention "github.com/opmeter/opmeter/internal/runtime/onnxop/attention"
	onnxcontrib "github.com/opmeter/opmeter/internal/runtime/onnxop/contrib"
	onnxcontrol "github.com/opmeter/opmeter/internal/runtime/onnxop/control"
	onnxconv "github.com/opmeter/opmeter/internal/runtime/onnxop/conv"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	onnxwise "github.com/opmeter/opmeter/internal/runtime/onnxop/elementwise"
	onnximage "github.com/opmeter/opmeter/internal/runtime/onnxop/image"
	onnxindex "github.com/opmeter/opmeter/internal/runtime/onnxop/index"
	onnxloss "github.com/opmeter/opmeter/internal/runtime/onnxop/loss"
	onnxmatmul "github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	onnxml "github.com/opmeter/opmeter/internal/runtime/onnxop/ml"
	onnxnorm "github.com/opmeter/opmeter/internal/runtime/onnxop/norm"
	onnxpool "github.com/opmeter/opmeter/internal/runtime/onnxop/pool"
	onnxquant "github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	onnxrandom "github.com/opmeter/opmeter/internal/runtime/onnxop/random"
	onnxrecurrent "github.com/opmeter/opmeter/internal/runtime/onnxop/recurrent"
	onnxreduce "github.com/opmeter/opmeter/internal/runtime/onnxop/reduce"
	onnxresize "github.com/opmeter/opmeter/internal/runtime/onnxop/resize"
	onnxsignal "github.com/opmeter/opmeter/internal/runtime/onnxop/signal"
	onnxtext "github.com/opmeter/opmeter/internal/runtime/onnxop/text"
	onnxtraining "github.com/opmeter/opmeter/internal/runtime/onnxop/training"
	"github.com/opmeter/opmeter/internal/runtime/op"
	liteactivation "github.com/opmeter/opmeter/internal/runtime/tfliteop/activation"
	litearith "github.com/opmeter/opmeter/internal/runtime/tfliteop/arith"
	litearray "github.com/opmeter/opmeter/internal/runtime/tfliteop/array"
	litecontrol "github.com/opmeter/opmeter/internal/runtime/tfliteop/control"
	liteconv "github.com/opmeter/opmeter/internal/runtime/tfliteop/conv"
	litewise "github.com/opmeter/opmeter/internal/runtime/tfliteop/elementwise"
	litematmul "github.com/opmeter/opmeter/internal/runtime/tfliteop/matmul"
	litepool "github.com/opmeter/opmeter/internal/runtime/tfliteop/pool"
	litequant "github.com/opmeter/opmeter/internal/runtime/tfliteop/quant"
	literecurrent "github.com/opmeter/opmeter/internal/runtime/tfliteop/recurrent"
	litereduce "github.com/opmeter/opmeter/internal/runtime/tfliteop/reduce"
	litesignal "github.com/opmeter/opmeter/internal/runtime/tfliteop/signal"
	litestablehlo "github.com/opmeter/opmeter/internal/runtime/tfliteop/stablehlo"
	litevision "github.com/opmeter/opmeter/internal/runtime/tfliteop/vision"
)

//go:embed onnx.schema
var onnxSchema string

//go:embed tflite.schema
var tfliteSchema string

//go:embed foreign.schema
var foreignSchema string

// schemas are the operator tables, parsed once for all registries.
var schemas = sync.OnceValue(func() []*op.Schemas {
	o := op.LazySchemas(onnxSchema, others, op.Malformed)
	o.Elem = onnx.ElemType
	return []*op.Schemas{o, op.LazySchemas(tfliteSchema, lite, op.Unsupported), op.LazySchemas(foreignSchema, others, op.Unsupported)}
})

// lite reports whether a domain belongs to TFLite.
func lite(domain string) bool { return domain == graph.TFLite || domain == graph.TFLiteCustom }

func others(domain string) bool { return !lite(domain) }

// Definitions, those of the usual operators first, see [op.Registry.AddLazy].
var (
	liteLists = []func() []op.Def{
		litematmul.Defs, liteconv.Defs, litepool.Defs, liteactivation.Defs, litearith.Defs, litequant.Defs, litearray.Defs, litereduce.Defs, litewise.Defs, literecurrent.Defs, litecontrol.Defs, litevision.Defs, litesignal.Defs, litestablehlo.Defs,
	}
	onnxLists = []func() []op.Def{
		onnxmatmul.Defs, onnxconv.Defs, onnxpool.Defs, onnxwise.Defs, onnxarray.Defs, onnxquant.Defs, onnxnorm.Defs, onnxreduce.Defs, onnxindex.Defs, onnxcontrol.Defs, onnxresize.Defs, onnxrecurrent.Defs, onnxcontrib.Defs, onnxattention.Defs, onnxml.Defs, onnximage.Defs, onnxloss.Defs, onnxrandom.Defs,
		onnxsignal.Defs, onnxtext.Defs, onnxtraining.Defs,
	}
)

// Registry returns all operators of all formats, with their schema tables.
func Registry() *op.Registry {
	r := op.NewRegistry()
	r.AddLazy(lite, liteLists...)
	r.AddLazy(others, onnxLists...)
	r.Schemas = schemas()
	r.Widen = elem.Widen
	return r
}
