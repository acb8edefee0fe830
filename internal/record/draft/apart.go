package draft

import (
	"fmt"
	"strconv"

	"github.com/opmeter/opmeter/profile"
)

// MaxRuns limits the runs of a file.
const MaxRuns = 1000

// Apart numbers the runs of one file and says that nothing was added up. undecided says that some
// of them may be inferences of one run: the file does not tell, see [record.Undecided].
func Apart(ds []*Draft, undecided bool) {
	if len(ds) < 2 {
		return
	}
	for i, d := range ds {
		d.P.Model.Name = Text(d.P.Model.Name + " " + strconv.Itoa(i+1))
		if undecided {
			d.Found("record.runs", profile.Warning, "This is block %d of %d in the file. The file does not say whether the blocks are inferences of one run or different runs, so each is a profile and nothing is added up.", i+1, len(ds))
			continue
		}
		d.Found("record.runs", profile.Info, "This is run %d of %d in the file. Each is a profile, and nothing is added up.", i+1, len(ds))
	}
}

// Beyond counts runs beyond [MaxRuns], which are left out.
func Beyond(ds []*Draft, n int64) {
	if len(ds) > 0 {
		ds[len(ds)-1].Dropped.Add(fmt.Sprintf("runs beyond the first %d", MaxRuns), n)
	}
}
