package litert

import "strconv"

// status is a LiteRtStatus; 0 is success.
type status int32

const (
	badArgument    status = 1
	noMemory       status = 2
	runtimeFailed  status = 3
	unsupported    status = 5
	notFound       status = 6
	fileTrouble    status = 500
	badFlatbuffer  status = 501
	cannotCompile  status = 504
	outOfBounds    status = 1000
	canceled       status = 100
	wrongVersion   status = 8
	missingInput   status = 4
	unsupportedRun status = 4000
)

var statusTexts = map[status]string{
	badArgument: "invalid argument", noMemory: "no memory", runtimeFailed: "runtime failure", missingInput: "an input is missing", unsupported: "unsupported",
	notFound: "not found", wrongVersion: "wrong version", canceled: "cancelled", fileTrouble: "the file cannot be read", badFlatbuffer: "no valid model",
	cannotCompile: "the model cannot be compiled", outOfBounds: "an index is out of bounds", unsupportedRun: "the model needs another version of the runtime",
}

// String returns a readable text with the number from the library's header.
func (s status) String() string {
	n := "status " + strconv.Itoa(int(s))
	if t := statusTexts[s]; t != "" {
		return t + " (" + n + ")"
	}
	return n
}
