// Package xlsx writes a profile as a workbook in the format of Office Open XML
// (ECMA-376), which Excel, LibreOffice and others read.
//
// Sheets: "Summary" (what ran, on what, how, figures of the whole model,
// findings), "Layers" (a row a layer, the columns of the comma-separated file),
// "By operator", "Sparse what-if" (see package whatif) and "Columns" (what each
// column is). Figures that follow from cells are formulas, so that they move when
// a cell is edited; with every formula stands its value, computed here, for
// programs that read and do not compute. What is not known is an empty cell.
//
// Samples are not in the workbook, only their statistics: a run of a thousand
// layers has millions, more than a sheet has rows. The saved profile has them.
//
// Names of models and layers are strings for the spreadsheet whatever they look
// like, and no formula is made from them.
package xlsx
