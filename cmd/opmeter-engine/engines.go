package main

import (
	"github.com/opmeter/opmeter/internal/guest/child"
	"github.com/opmeter/opmeter/internal/guest/litert"
	"github.com/opmeter/opmeter/internal/guest/onnxruntime"
	"github.com/opmeter/opmeter/internal/guest/openvino"
	"github.com/opmeter/opmeter/internal/guest/tflite"
)

// engines are those that this program can open, by name.
var engines = child.Engines{
	"litert":      litert.Open,
	"onnxruntime": onnxruntime.Open,
	"openvino":    openvino.Open,
	"tflite":      tflite.Open,
}
