package modelfile

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
)

// kind is a kind of file that people take for a model that opmeter reads, with what to do about it.
type kind struct {
	is      func(head []byte) bool
	endings []string // that name it where the content does not tell
	what    string
	advice  string
}

// kinds lists the kinds, the surest first.
var kinds = []kind{
	{is: begins("version https://git-lfs."), what: "a Git LFS pointer and not the file itself", advice: "run git lfs pull"},
	{is: beginsFolded("<!doctype html", "<html"), what: "an HTML page", advice: "download the file itself (the raw link) and not its page"},
	{is: begins("\x89OPM\r\n"), what: "a saved profile", advice: "show it with opmeter report, compare several with opmeter compare"},
	{is: begins("\x89HDF\r\n\x1a\n"), what: "an HDF5 file, as Keras writes", advice: "convert it with tf.lite.TFLiteConverter.from_keras_model"},
	{is: member("/data.pkl", "/byteorder", "/constants.pkl"), what: "a PyTorch checkpoint", advice: "export it with torch.onnx.export"},
	{is: pickle, what: "a PyTorch checkpoint or another Python pickle", advice: "export the model with torch.onnx.export"},
	{is: member("metadata.json", "config.json", "model.weights.h5"), endings: []string{".keras"}, what: "a Keras archive", advice: "convert it with tf.lite.TFLiteConverter.from_keras_model"},
	{is: member(".mlpackage/", "Manifest.json"), endings: []string{".mlmodel", ".mlpackage"}, what: "a Core ML model", advice: "profile the ONNX or TFLite model that it was converted from"},
	{is: member(".npy"), what: "a NumPy archive", advice: "give a model, and its data with --input NAME=FILE.npy"},
	{is: begins("\x93NUMPY"), what: "a NumPy array", advice: "give a model, and this array with --input NAME=FILE"},
	{is: safetensors, what: "a safetensors file, which has weights and no graph", advice: "export the model with torch.onnx.export or optimum-cli export onnx"},
	{is: begins("ptrt", "ftrt"), endings: []string{".engine", ".plan", ".trt"}, what: "a TensorRT engine", advice: "profile it with trtexec --exportProfile=FILE and read that with opmeter import"},
	{is: openvino, what: "an OpenVINO IR file", advice: "profile the ONNX or TFLite model that it was converted from with --engine openvino"},
	{is: begins("\x1f\x8b"), what: "a gzip file", advice: "unpack it first"},
	{is: never, endings: []string{".pb"}, what: "a TensorFlow graph", advice: "convert it with tf2onnx or tf.lite.TFLiteConverter"},
	{is: never, endings: []string{".pt", ".pth", ".ckpt"}, what: "a PyTorch checkpoint", advice: "export it with torch.onnx.export"},
}

// foreign says what a file is that is not a model, and what to do; "" where that is not known. The
// content decides before the name.
func foreign(name string, head []byte) string {
	low := strings.ToLower(name)
	for _, byName := range []bool{false, true} {
		for _, k := range kinds {
			if !byName && k.is(head) || byName && slices.ContainsFunc(k.endings, func(e string) bool { return strings.HasSuffix(low, e) }) {
				return k.what + ": " + k.advice
			}
		}
	}
	return ""
}

// Describe says what a file is and what to do with it, where it is a model or a kind of file that
// is taken for one or for a profile; "" for all others.
func Describe(path string) string {
	f, _, err := infile.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := readHead(f)
	if err != nil {
		return ""
	}
	if hasTFLiteMark(head) || strings.EqualFold(filepath.Ext(path), ".onnx") && len(head) > 0 && !isText(head) {
		return "a model: measure it with opmeter profile"
	}
	return foreign(path, head)
}

func never([]byte) bool { return false }

func begins(marks ...string) func([]byte) bool {
	return func(head []byte) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return bytes.HasPrefix(head, []byte(m)) })
	}
}

// beginsFolded is [begins] for text: blanks before it and the case of letters do not count.
func beginsFolded(marks ...string) func([]byte) bool {
	is := begins(marks...)
	return func(head []byte) bool { return is(bytes.ToLower(bytes.TrimLeft(head, " \t\r\n\ufeff"))) }
}

// member reports whether the first member of a ZIP archive has a name with one of the parts.
func member(parts ...string) func([]byte) bool {
	return func(head []byte) bool {
		const header = 30
		if len(head) < header || !bytes.HasPrefix(head, []byte("PK\x03\x04")) {
			return false
		}
		end := min(len(head), header+int(binary.LittleEndian.Uint16(head[26:])))
		name := string(head[header:end])
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
	}
}

// pickle reports whether a file is a Python pickle of protocol 2 to 5.
func pickle(head []byte) bool {
	return len(head) > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5
}

// safetensors reports whether a file begins with the length of a JSON object and its first byte.
func safetensors(head []byte) bool {
	if len(head) < 10 || head[8] != '{' {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n >= 2 && n < 1<<32 && (head[9] == '"' || head[9] == '}')
}

// openvino reports whether a file is XML with a network.
func openvino(head []byte) bool {
	return (bytes.HasPrefix(head, []byte("<?xml")) || bytes.HasPrefix(head, []byte("<net"))) && bytes.Contains(head, []byte("<net "))
}
