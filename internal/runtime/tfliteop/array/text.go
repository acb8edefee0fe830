package array

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

func textDefs() []op.Def {
	return []op.Def{lite("SKIP_GRAM", 1, inferSkipGram, prepareSkipGram)}
}

// maxGrams bounds the number of results: it grows with the power of the n-gram's size.
const maxGrams = 1 << 20

func inferSkipGram(c *op.Call) error {
	if x := c.In[0]; x.Type != tensor.String || x.Len() != 1 {
		return fmt.Errorf("input %v %s where one string is expected", x.Type, tensor.FormatShape(x.Shape))
	}
	return op.ErrDynamic
}

// prepareSkipGram lists n-grams of words with at most some words skipped between neighbours,
// longer ones first.
func prepareSkipGram(c *op.Call) (op.Run, error) {
	size, skip := c.Node.Attrs.Int("ngram_size", 0), c.Node.Attrs.Int("max_skip_size", 0)
	all := c.Node.Attrs.Bool("include_all_ngrams", false)
	if size < 1 || skip < 0 {
		return nil, fmt.Errorf("n-grams of %d words that skip %d", size, skip)
	}
	return func(c *op.Call) error {
		words := strings.Split(c.In[0].Strings[0], " ")
		var list, gram []string
		steps := 0
		var extend func(last int) error
		extend = func(last int) error {
			if steps++; steps > 16*maxGrams {
				return fmt.Errorf("too many ways to skip words")
			}
			if n := len(gram); n < size {
				end := len(words)
				if n > 0 {
					end = min(end, last+skip+2)
				}
				for i := last + 1; i < end; i++ {
					gram = append(gram, words[i])
					if err := extend(i); err != nil {
						return err
					}
					gram = gram[:n]
				}
			}
			if n := len(gram); n == size || all && n > 0 {
				if len(list) == maxGrams {
					return fmt.Errorf("more than %d n-grams", maxGrams)
				}
				list = append(list, strings.Join(gram, " "))
			}
			return nil
		}
		if err := extend(-1); err != nil {
			return err
		}
		y, err := c.Make(0, tensor.String, []int{len(list)})
		if err != nil {
			return err
		}
		copy(y.Strings, list)
		return nil
	}, nil
}
