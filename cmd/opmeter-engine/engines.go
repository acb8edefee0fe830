package main

import (
	"github.com/opmeter/opmeter/internal/external/child"
	"github.com/opmeter/opmeter/internal/external/litert"
	"github.com/opmeter/opmeter/internal/external/onnxruntime"
	"github.com/opmeter/opmeter/internal/external/openvino"
	"github.com/opmeter/opmeter/internal/external/tflite"
)

// engines are those that this program can open, by name.
var engines = child.Engines{
	"litert":      litert.Open,
	"onnxruntime": onnxruntime.Open,
	"openvino":    openvino.Open,
	"tflite":      tflite.Open,
}
