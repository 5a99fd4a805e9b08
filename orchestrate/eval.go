package orchestrate

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/assay-xai/assay/internal/record"
)

// evalTop is how many classes a record keeps.
const evalTop = 5

// evalStudy asks nets what they see: accuracy and predictions.
func evalStudy() Study {
	return Study{
		ID:         "eval",
		Summary:    "top-1 and top-5 accuracy, and the prediction for every image",
		Code:       "eval/1",
		Parameters: []Parameter{targetParameter(targetPredicted)},
		Run:        runEval,
		Metrics: []Metric{
			{ID: "top1", Summary: "the label is the most probable class", HigherIsBetter: true, Value: correct(1)},
			{ID: "top5", Summary: "the label is among the five most probable classes", HigherIsBetter: true, Value: correct(evalTop)},
			{ID: "probability", Summary: "probability of the predicted class", HigherIsBetter: true, Value: func(r record.Record) (float64, bool) {
				if r.Prediction == nil || len(r.Prediction.Probabilities) == 0 {
					return 0, false
				}
				return r.Prediction.Probabilities[0], true
			}},
		},
	}
}

// correct is 1 where the label is among the first k classes, nothing without label.
func correct(k int) func(record.Record) (float64, bool) {
	return func(r record.Record) (float64, bool) {
		if r.Prediction == nil || r.Class == nil {
			return 0, false
		}
		for _, c := range r.Prediction.Classes[:min(k, len(r.Prediction.Classes))] {
			if c == *r.Class {
				return 1, true
			}
		}
		return 0, true
	}
}

// evalChunk is how many images are decoded and recorded together, at least.
const evalChunk = 32

func runEval(ctx context.Context, s *Session, units []Unit, emit func(...record.Record) error) error {
	return s.eachNet(ctx, units, func(net Net, units []Unit) error {
		return eachChunk(ctx, s, units, s.wholeBatches(evalChunk), func(c *chunk) error {
			records, err := s.evalChunk(ctx, net, c)
			if err != nil {
				return err
			}
			return emit(records...)
		})
	})
}

func (s *Session) evalChunk(ctx context.Context, net Net, c *chunk) ([]record.Record, error) {
	start := time.Now()
	records, err := s.predict(ctx, net, c)
	if err != nil {
		return nil, err
	}
	seconds := time.Since(start).Seconds() / float64(len(c.units))
	for i := range records {
		records[i].Cost = record.Cost{Seconds: seconds, Evaluations: 1, Forwards: 1}
	}
	return records, nil
}

// predict begins the record of every unit of a chunk.
func (s *Session) predict(ctx context.Context, net Net, c *chunk) ([]record.Record, error) {
	predictions, err := net.Predict(ctx, c.images, min(evalTop, net.Info().Classes), s.Batch())
	if err != nil {
		return nil, fmt.Errorf("running net %s: %w", c.units[0].Net.Name, err)
	}
	records := make([]record.Record, len(c.units))
	for i, u := range c.units {
		records[i] = s.begin(u, predictions[c.row[i]], c.failed[c.row[i]])
	}
	return records, nil
}

// begin makes the record of a unit on one image with what is known before the
// study's own work: label, prediction, tracked class. failed, and an output
// that is no number, make it the record of a failure.
func (s *Session) begin(u Unit, p Prediction, failed error) record.Record {
	item := u.Data.Set.Items()[u.Item]
	r := record.Record{ID: u.ID, Study: s.Study.ID, Net: u.Net.Name, Image: item.ID, Params: u.Params, Seed: u.Seed}
	if len(s.Plan.Data) > 1 {
		r.Params = Params{"data": u.Data.Name}
		for k, v := range u.Params {
			r.Params[k] = v
		}
	}
	if u.Data.Set.HasLabels && item.Class >= 0 {
		class := item.Class
		r.Class = &class
	}
	if failed != nil {
		r.Target = target(u.Params.Text("target"), item.Class, []int{-1})
		return record.Failure(r, failed.Error())
	}
	r.Target = target(u.Params.Text("target"), item.Class, p.Classes)
	r.Prediction = &record.Prediction{Classes: p.Classes, Probabilities: p.Probabilities}
	for _, v := range p.Probabilities {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if t := u.Params.Text("target"); t == "" || t == targetPredicted {
				r.Target = -1 // nobody knows what is predicted
			}
			return record.Failure(r, notFinite)
		}
	}
	return r
}
