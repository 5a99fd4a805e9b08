package report

import "testing"

func TestDemo(t *testing.T) {
	f := demo(t)
	f.write(Options{ClassName: imagenetName(t)})
}
