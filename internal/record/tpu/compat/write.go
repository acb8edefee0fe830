package compat

// Write makes the converter's files of a directory: those of all formats of the classic
// converter for BM1684 and BM1684X, those of the newer one for all other chips.
func Write(in *Input) ([]File, error) {
	if in.Classic != nil {
		return Texts(in), nil
	}
	p := newPerfAI(in)
	book, err := p.book()
	if err != nil {
		return nil, err
	}
	return append(p.texts(), File{"PerfAI_output.xlsx", book}), nil
}

// Texts makes the files of [Write] without the workbook.
func Texts(in *Input) []File {
	if in.Classic != nil {
		return newClassic(in).texts()
	}
	return newPerfAI(in).texts()
}

func (p *perfAI) texts() []File {
	return append(p.dumps(), File{"PerfAI_output.csv", p.world()}, File{"profile_data.js", p.page()})
}

func (c *classic) texts() []File {
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
	}
}
