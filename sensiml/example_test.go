package sensiml_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/sensiml"
)

// What a board printed, with two means that the vendor's parser cannot tell apart.
func ExampleProfileParser() {
	const pack = `{"ModelDescriptions": [{"Name": "walk", "ModelType": "PME",
		"FeatureNames": ["XMean", "YMean"], "FeatureFunctions": ["Mean", "Mean"]}]}`
	const recording = `{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[640,1280],"ClassifierCycles": 6400}
{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[640,1280],"ClassifierCycles": 6400}
`
	model, err := sensiml.ReadPack(strings.NewReader(pack))
	if err != nil {
		panic(err)
	}
	p, err := sensiml.NewProfileParser(sensiml.Options{
		Pack:  model,
		Input: strings.NewReader(recording),
		Rules: sensiml.Rules{ClockHz: 64e6},
	})
	if err != nil {
		panic(err)
	}
	if err := p.Run(context.Background()); err != nil {
		panic(err)
	}
	for _, f := range p.Result().Models[0].Features {
		fmt.Printf("%s: %.0f cycles, %.0f µs\n", f.Name, f.Cycles.Median, f.Time.Median*1e6)
	}
	// Output:
	// Mean X: 640 cycles, 10 µs
	// Mean Y: 1280 cycles, 20 µs
}
