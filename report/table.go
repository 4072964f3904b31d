package report

import (
	"path"
	"regexp"
	"strings"
)

// A Table is a table of a Markdown file.
type Table struct {
	Title string
	Head  []string
	Rows  [][]TableCell
}

// A TableCell is the text of a cell. If the cell links to a recording, Recording is its
// file, and Link is the address of its report.
type TableCell struct {
	Text, Recording, Link string
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]*)\)`)

// ReadTables returns the tables of a Markdown text, each with the heading before it. It
// ignores all other text.
func ReadTables(text string) []Table {
	var out []Table
	title, open := "", false
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			title = plainMarkdown(strings.TrimLeft(line, "# "))
		case !strings.HasPrefix(line, "|"):
			open = false
			continue
		case strings.Trim(line, "|-: ") == "":
			continue // the line below the head
		case !open:
			open = true
			t := Table{Title: title}
			for _, c := range tableCells(line) {
				t.Head = append(t.Head, c.Text)
			}
			out = append(out, t)
			continue
		default:
			t := &out[len(out)-1]
			t.Rows = append(t.Rows, tableCells(line))
			continue
		}
		open = false
	}
	return out
}

func tableCells(line string) []TableCell {
	const bar = "\x00" // stands for an escaped bar
	line = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), `\|`, bar)
	var out []TableCell
	for _, c := range strings.Split(line, "|") {
		c = strings.ReplaceAll(strings.TrimSpace(c), bar, "|")
		cell := TableCell{Text: plainMarkdown(c)}
		for _, m := range markdownLink.FindAllStringSubmatch(c, -1) {
			if strings.HasSuffix(m[2], ".lockstep") && cell.Recording == "" {
				cell.Recording = path.Clean(m[2])
			}
		}
		out = append(out, cell)
	}
	return out
}

// plainMarkdown removes links, bold marks, code marks and line breaks from Markdown.
func plainMarkdown(s string) string {
	s = markdownLink.ReplaceAllString(s, "$1")
	return strings.NewReplacer("**", "", "`", "", "<br>", "; ").Replace(s)
}
