package main

import (
	"github.com/opmeter/opmeter/internal/guest/child"
	"github.com/opmeter/opmeter/internal/guest/onnxruntime"
)

// engines are those that this program can open, by name.
var engines = child.Engines{
	"onnxruntime": onnxruntime.Open,
}
