package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// minus is typeset as such, and narrow blanks group digits.
const (
	minus      = "−"
	thinSpace  = "\u202f"
	groupFrom  = 5 // digits
	missing    = "–"
	percentFmt = "%.*f" + thinSpace + "%%"
)

func decimal(v float64, places int) string {
	s := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return strings.Replace(s, "-", minus, 1)
}

// value writes a sum or objective with as many places as are worth reading.
func value(v float64) string {
	switch a := math.Abs(v); {
	case a >= 10000:
		return decimal(v, 0)
	case a >= 100:
		return decimal(v, 1)
	case a >= 1:
		return decimal(v, 2)
	}
	return decimal(v, 3)
}

func percent(v float64, places int) string { return fmt.Sprintf(percentFmt, places, v*100) }

// probability writes small ones so that they do not look impossible.
func probability(v float64) string {
	switch {
	case v > 0 && v < .0005:
		return "<" + thinSpace + "0.1" + thinSpace + "%"
	case v < 1 && v > .9995:
		return ">" + thinSpace + "99.9" + thinSpace + "%"
	}
	return percent(v, 1)
}

func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	if n < 0 {
		return minus + grouped(-n)
	}
	if len(s) < groupFrom {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteString(thinSpace)
		}
		b.WriteRune(c)
	}
	return b.String()
}

func seconds(s float64) string {
	switch {
	case s < 0 || math.IsNaN(s):
		return missing
	case s < .01:
		return decimal(s*1000, 1) + " ms"
	case s < 1:
		return decimal(s*1000, 0) + " ms"
	case s < 99.95:
		return decimal(s, 1) + " s"
	case s < 5400:
		n := int(math.Round(s))
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	}
	n := int(math.Round(s / 60))
	return fmt.Sprintf("%d h %02d min", n/60, n%60)
}

// plural is "1 image", "3 images".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(int64(n)) + " " + many
}

// list joins words as people do: "a, b and c".
func list(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// shortNumber rounds a number written with all its digits.
func shortNumber(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return text
	}
	return decimal(v, 4)
}
