// Command marks is an application that marks the stages of its pipeline: it decodes
// images, makes them small, runs a model on them with opmeter's own engine and looks up
// the class, one image after the other, while a second goroutine decodes the next ones.
//
//	go build -o /tmp/pipeline ./examples/marks
//	opmeter trace -- /tmp/pipeline
//	opmeter trace --model examples/resnet8.yaml -o page.html -- /tmp/pipeline
//
// c/pipeline.c is the same in C, around an engine that is only pretended.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"log"
	"os"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/marks"
)

// Names are made once; a mark has only their number.
var (
	camera      = marks.Named("camera")
	decode      = marks.Named("decode")
	preprocess  = marks.Named("preprocess")
	resize      = marks.Named("resize")
	infer       = marks.Named("infer")
	postprocess = marks.Named("postprocess")
	jpegBytes   = marks.Named("jpeg_bytes")
	waiting     = marks.Named("waiting")
)

func main() {
	model := flag.String("model", "examples/resnet8.yaml", "model with one input of bytes, height x width x 3")
	n := flag.Int("frames", 50, "pictures")
	flag.Parse()
	// The name of the variable that opmeter trace sets is OPMETER_MARKS; without it marks stay off.
	if err := marks.Open(""); err != nil {
		log.Print(err) // the application does not need them
	}
	defer func() { _ = marks.Close() }() // marks that are lost are not a fault of the application
	if err := run(*model, *n, os.Stdout); err != nil {
		log.Print(err)
	}
}

// image is what goes from the first goroutine to the second, with the frame that it is of.
type picture struct {
	frame marks.Frame
	image image.Image
}

func run(path string, n int, out io.Writer) error {
	m, err := opmeter.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := opmeter.NewSession(m, opmeter.RunOptions{})
	if err != nil {
		return err
	}
	defer s.Close()

	pictures, failed := make(chan picture, 4), make(chan error, 1)
	go func() {
		defer close(pictures)
		if err := decoder(n, pictures); err != nil {
			failed <- err
		}
	}()
	l := marks.NewLane("infer")
	defer l.Close()
	l.Model(infer, path, "")
	counts := map[int]int{}
	for p := range pictures {
		l.Level(waiting, float64(len(pictures)))
		l.Enter(p.frame)
		class, err := classify(l, s, p.image)
		l.EndFrame(p.frame)
		if err != nil {
			return err
		}
		counts[class]++
	}
	select {
	case err := <-failed:
		return err
	default:
	}
	fmt.Fprintf(out, "%d images, %d classes\n", n, len(counts))
	return nil
}

// decoder makes the images.
func decoder(n int, to chan<- picture) error {
	l := marks.NewLane("decode")
	defer l.Close()
	for i := range n {
		data, err := shot(i) // what a camera would do: not marked
		if err != nil {
			return err
		}
		f := l.BeginFrame(camera)
		l.Begin(decode)
		l.Count(jpegBytes, int64(len(data)))
		img, err := jpeg.Decode(bytes.NewReader(data))
		l.End(decode)
		l.Leave()
		if err != nil {
			return err
		}
		to <- picture{f, img}
	}
	return nil
}

// classify runs the model on a image.
func classify(l *marks.Lane, s *opmeter.Session, img image.Image) (int, error) {
	in := s.Inputs()[0]
	l.Begin(preprocess)
	l.Begin(resize)
	small := shrink(img, in.Shape[1], in.Shape[2])
	l.End(resize)
	for i, v := range small {
		in.Data[i] = v ^ 0x80 // from 0 to 255 to the signed numbers of the model
	}
	l.End(preprocess)

	l.Begin(infer)
	err := s.Run(context.Background())
	l.End(infer)
	if err != nil {
		return 0, err
	}

	l.Begin(postprocess)
	defer l.End(postprocess)
	best, most := 0, -129
	for i, v := range s.Outputs()[0].Data {
		if int(int8(v)) > most {
			best, most = i, int(int8(v))
		}
	}
	return best, nil
}

// shrink takes the nearest pixel for each.
func shrink(img image.Image, h, w int) []byte {
	b := img.Bounds()
	out := make([]byte, 0, h*w*3)
	for y := range h {
		for x := range w {
			r, g, bl, _ := img.At(b.Min.X+x*b.Dx()/w, b.Min.Y+y*b.Dy()/h).RGBA()
			out = append(out, byte(r>>8), byte(g>>8), byte(bl>>8))
		}
	}
	return out
}

// shot is a image with stripes, packed.
func shot(n int) ([]byte, error) {
	img := image.NewRGBA(image.Rect(0, 0, 320, 240))
	for y := range 240 {
		for x := range 320 {
			img.Set(x, y, color.RGBA{uint8(x + n), uint8(y * n), uint8(x ^ y), 255})
		}
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, img, nil)
	return b.Bytes(), err
}
