package target_test

import (
	"fmt"
	"log"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/target"
)

// Which of three chips has the memory for a model?
func ExampleTarget_Estimate() {
	m, err := opmeter.Open("../examples/ds_cnn.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	set, err := target.Load("") // built-in targets only
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"stm32l4r5", "efr32xg24-mvp", "rp2040"} {
		t, err := set.Find(id)
		if err != nil {
			log.Fatal(err)
		}
		p, err := t.Estimate(m, opmeter.EstimateOptions{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.ID, t.Core, *p.Totals.RAMBytes < *t.RAMBytes)
	}
	// Output:
	// stm32l4r5 Cortex-M4 true
	// efr32xg24-mvp Cortex-M33 true
	// rp2040 Cortex-M0+ true
}

// An unknown id gives an error that names similar ones.
func ExampleSet_Find() {
	set, err := target.Load("")
	if err != nil {
		log.Fatal(err)
	}
	_, err = set.Find("stm32l4r")
	fmt.Println(err)
	// Output: target: no target "stm32l4r"; did you mean stm32l4r5?
}
