package usage

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLine bounds what Line leaves of a message, in bytes.
const maxLine = 280

type lined struct {
	error
	text string
}

func (l lined) Error() string { return l.text }
func (l lined) Unwrap() error { return l.error }

// Line makes the message of an error about a stranger's file one line that can
// be printed: what such a file holds ends up in messages, and it may be
// anything. Line breaks and characters that are not printed are escaped as Go
// escapes them, and of more than 280 bytes (beside those of path, which may be
// long) the middle is left out. nil stays nil; the error stays what it was for
// errors.Is and As.
func Line(err error, path string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if path != "" {
		// Once: a path in a message twice is a path too many.
		before, after, found := strings.Cut(text, path)
		if found {
			text = escape(before) + path + shorten(escape(after), maxLine-min(maxLine/2, len(before)))
			return lined{err, text}
		}
	}
	return lined{err, shorten(escape(text), maxLine)}
}

// Quote quotes a stranger's text for a message, at most 60 bytes of it.
func Quote(text string) string { return strconv.Quote(cut(text, 60)) }

// cut shortens text to n bytes and dots, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}

// shorten leaves out the middle; the end often says what would be right.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := most*2/3, len(text)-(most/3-5)
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + " ... " + text[tail:]
}

func escape(text string) string {
	plain := func(c rune) bool { return unicode.IsPrint(c) && c != utf8.RuneError }
	if !strings.ContainsFunc(text, func(c rune) bool { return !plain(c) }) {
		return text
	}
	var b strings.Builder
	for i, c := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case plain(c):
			b.WriteRune(c)
		case c == '\n' || c == '\r':
			b.WriteString("; ")
		default:
			quoted := strconv.Quote(text[i : i+size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return strings.TrimSpace(b.String())
}
