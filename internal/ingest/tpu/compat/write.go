package compat

// Write makes the converter's files of a directory: those of all formats of the classic
// converter for BM1684 and BM1684X, those of the newer one for all other chips.
func Write(in *Input) ([]File, error) {
	if in.Classic != nil {
		return oldFiles(in)
	}
	return newFiles(in)
}

// newFiles are the files for BM1688, CV186X, CV184X and BM1690.
func newFiles(in *Input) ([]File, error) {
	p := newPerfAI(in)
	files := p.dumps()
	files = append(files, File{"PerfAI_output.csv", p.world()}, File{"profile_data.js", p.page()})
	return files, nil
}

// oldFiles are the files for BM1684 and BM1684X.
func oldFiles(in *Input) ([]File, error) {
	c := newClassic(in)
	list := c.statistics()
	groups := c.groupStats(list)
	all := c.overall(list, groups)
	return []File{
		{"layer.csv", c.layersCSV(list)},
		{"summary.csv", c.groupsCSV(groups, all)},
		{"mac_util.csv", c.macCSV(groups, all)},
		{"instruction.csv", c.instructions()},
		{"detail.csv", c.detailCSV()},
		{"mem.csv", c.memCSV()},
		{"summary_of_csv_format.csv", c.summaryCSV()},
		{"profile_data.js", c.page()},
	}, nil
}
