// The leading eigenvector against LAPACK's decomposition.
#include "attribution/eigenvector.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/fill.h"

namespace assay {
namespace {

std::vector<double> numbers(const at::Tensor& matrix) {
  const at::Tensor flat = matrix.contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// A symmetric matrix with those eigenvalues, in directions of a formula.
at::Tensor with_eigenvalues(const at::Tensor& values, const std::string& name) {
  const int64_t n = values.numel();
  const at::Tensor random = fill_values(name, {n, n}, 1, 0).to(at::kDouble);
  const at::Tensor q = std::get<0>(at::linalg_qr(random));
  const at::Tensor matrix = q.matmul(values.unsqueeze(1) * q.t());
  return (matrix + matrix.t()) / 2;
}

TEST(LeadingEigenvector, IsThatOfTheDecomposition) {
  int found = 0;
  for (const int64_t n : {1, 2, 3, 5, 17, 49, 64, 120}) {
    for (const double ratio : {0.0, 0.3, 0.9, 0.99}) {  // of an eigenvalue to the one before
      at::Tensor values = at::empty({n}, at::kDouble);
      for (int64_t i = 0; i < n; ++i) values[i] = 7 * std::pow(ratio, static_cast<double>(i));
      const at::Tensor matrix = with_eigenvalues(values, "matrix " + std::to_string(n));
      const std::vector<double> got = leading_eigenvector(numbers(matrix), n);
      if (got.empty()) continue;
      ++found;
      const at::Tensor v = at::tensor(got, at::kDouble);
      EXPECT_NEAR(v.norm().item<double>(), 1, 1e-12);
      EXPECT_LT((matrix.mv(v) - 7 * v).norm().item<double>(), 3e-12 * 7) << n << " " << ratio;
      const at::Tensor want = std::get<1>(at::linalg_eigh(matrix)).select(1, n - 1);
      EXPECT_NEAR(std::abs(v.dot(want).item<double>()), 1, 1e-12) << n << " " << ratio;
    }
  }
  EXPECT_GE(found, 28);  // what is not quick is left to LAPACK
}

// Where several directions are first, one of them.
TEST(LeadingEigenvector, OfEqualEigenvaluesIsOneOfTheirs) {
  const at::Tensor values = at::tensor({4., 4., 4., 1., .5, 0.}, at::kDouble);
  for (const at::Tensor& matrix : {with_eigenvalues(values, "equal"), at::eye(6, at::kDouble) * 4}) {
    const std::vector<double> got = leading_eigenvector(numbers(matrix), 6);
    ASSERT_EQ(got.size(), 6);
    const at::Tensor v = at::tensor(got, at::kDouble);
    EXPECT_LT((matrix.mv(v) - 4 * v).norm().item<double>(), 1e-11);
  }
}

TEST(LeadingEigenvector, OfZerosIsNoneAndOfNanIsNan) {
  EXPECT_TRUE(leading_eigenvector(std::vector<double>(25, 0), 5).empty());
  for (const size_t place : {0, 7, 24}) {
    std::vector<double> matrix = numbers(at::eye(5, at::kDouble));
    matrix[place] = std::nan("");
    for (const double x : leading_eigenvector(matrix, 5)) EXPECT_TRUE(std::isnan(x));
  }
  // Tiny and huge ones are as good as others.
  for (const double scale : {1e-140, 1e140}) {
    const at::Tensor matrix = with_eigenvalues(at::tensor({scale, scale / 3, 0.}, at::kDouble), "scaled");
    const std::vector<double> got = leading_eigenvector(numbers(matrix), 3);
    ASSERT_EQ(got.size(), 3);
    const at::Tensor v = at::tensor(got, at::kDouble);
    EXPECT_LT((matrix.mv(v) / scale - v).norm().item<double>(), 1e-11);
  }
}

}  // namespace
}  // namespace assay
