// Package marks lets an application tell which of its stages takes how long: decode,
// preprocess, infer, postprocess, around any engine and on any number of goroutines.
//
//	var camera, decode = marks.Named("camera"), marks.Named("decode")
//
//	func main() {
//		defer marks.Close()
//		if err := marks.Open(""); err != nil {
//			log.Print(err) // the application goes on without
//		}
//		l := marks.NewLane("main")
//		for {
//			frame := l.BeginFrame(camera)
//			l.Begin(decode)
//			...
//			l.End(decode)
//			l.EndFrame(frame)
//		}
//	}
//
// Run it with "opmeter trace -- ./application". Without that, or without OPMETER_MARKS in
// the environment, each call is a look at one variable. Nothing here waits for a reader
// or ends the application: what finds no room is left out and counted.
//
// The package imports the standard library alone and writes the same bytes as the C
// functions in marks/native/c; docs/reference/marks.md has the format.
package marks
